"""Descriptions of systems, for cross-device tables: one data file, anybody's own as well."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from pathlib import Path

import msgspec

from cotenant.errors import CotenantError


class System(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A machine as it is bought. `gpu` is a glob over the name that records have of the device, `devices` how many.

    `watt` is the constant power of all devices together, `price` that of the system; None where nobody says.
    """

    name: str
    gpu: str
    devices: int
    watt: float | None = None
    price: float | None = None


def read_systems(path: Path) -> list[System]:
    """Return the systems a JSON file describes. Raises CotenantError for a file that is none, with its place."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=list[System])
    except OSError as error:
        raise CotenantError(f"{path} cannot be read: {error.strerror}.", "--systems names a file of systems.") from None
    except msgspec.DecodeError as error:
        raise CotenantError(f"{path}: {error}.", "See targets/systems.json.") from None
    for one in found:
        if one.devices < 0 or any(number is not None and not number > 0 for number in (one.watt, one.price)):
            raise CotenantError(
                f"{path}: the numbers of '{one.name}' have to be positive.", "Leave out what is unknown."
            )
    return found


def system_of(systems: Sequence[System], gpu: str, devices: int) -> System | None:
    """Return the first system with so many such devices."""
    return next((one for one in systems if one.devices == devices and fnmatch.fnmatch(gpu, one.gpu)), None)
