"""The manifest of a fleet's directory: which nodes a fleet run was of, and how each of them ended."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from cotenant.decoding import decoded
from cotenant.errors import CotenantError
from cotenant.files import content_of
from cotenant.results.store import write_whole

FILE = "cotenant.fleet"
State = Literal["started", "finished", "failed", "lost"]


class NodeState(msgspec.Struct, frozen=True):
    """One node: its host, how it ended, and why."""

    host: str
    state: State
    message: str = ""


class FleetManifest(msgspec.Struct, frozen=True):
    """The request for a fleet run, and its nodes by their names."""

    suite: str
    tier: str
    nodes: dict[str, NodeState]
    schema: Literal["cotenant-fleet-1"] = "cotenant-fleet-1"


_MANIFEST = msgspec.json.Decoder(FleetManifest)


def write_manifest(directory: Path, manifest: FleetManifest) -> None:
    """Write it whole or not at all. Raises CotenantError."""
    write_whole(directory / FILE, msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n")


def read_manifest(directory: Path) -> FleetManifest | None:
    """Return the manifest of a directory; None where there is none. Raises CotenantError for a damaged one."""
    try:
        return decoded(_MANIFEST, content_of(directory / FILE))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise CotenantError(
            f"{directory / FILE} cannot be read: {error}.", "Move it away: records are judged without it."
        ) from error


def expected_of(path: Path, known: Mapping[str, NodeState]) -> dict[str, NodeState]:
    """Return the nodes of a file with a name a line beside those known. Raises CotenantError."""
    try:
        names = content_of(path, follow=True).decode().split()
    except (OSError, UnicodeDecodeError) as error:
        raise CotenantError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from error
    return {**{name: NodeState(name, "finished") for name in names}, **known}
