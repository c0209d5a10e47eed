"""References for rates, in files of `targets/` or a person's own: targets of a device model, and systems.

Targets are a CSV file with a rate per job; a JSON file describes the systems of cross-device tables.
"""

from __future__ import annotations

import csv
import fnmatch
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from cotenant.decoding import Positive, decoded
from cotenant.errors import CotenantError, did_you_mean
from cotenant.files import content_of
from cotenant.machine.accelerators import is_part
from cotenant.results.store import write_named

REFERENCE = ("V100", "MI50", "RTX", "RTX_2019")
"""The models with targets in the reference suite."""
COLUMNS = ("job", "target", "perf_target", "sd_target")
COMMENT = "#"
ORIGINAL = ("bench", *COLUMNS[1:])
"""The header of the reference suite's own target files."""


@dataclass(frozen=True, slots=True)
class Target:
    """A job's target: items per second, the least share of it, and the most spread (sd / mean)."""

    rate: float
    least_share: float = 0.5
    most_spread: float = 0.05


def targets_named(name: str, directory: Path) -> dict[str, Target]:
    """Return the targets of a device model in `directory` (`V100`), or of a file. Raises CotenantError."""
    if Path(name).is_file():
        return _read(Path(name))
    if "/" in name:
        raise CotenantError(f"There is no file {name}.", "A target file is CSV: " + ",".join(COLUMNS))
    path = directory / f"{name.lower()}.csv"
    if not path.is_file():
        models = sorted(path.stem.upper() for path in directory.glob("*.csv"))
        raise CotenantError(
            f"There are no targets for '{name}'.",
            f"{did_you_mean(name.upper(), models)} Known: {', '.join(models)}; or name a CSV file.".strip(),
        )
    return _read(path)


def save_targets(path: Path, targets: Mapping[str, Target]) -> None:
    """Write a target file whole or not at all. Raises CotenantError if it cannot be written."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for job, target in targets.items():
        writer.writerow([job, f"{target.rate:.6g}", f"{target.least_share:g}", f"{target.most_spread:g}"])
    write_named(path, text.getvalue().encode(), "--save-target names another file.")


def _read(path: Path) -> dict[str, Target]:
    try:
        reader = csv.reader(path.read_text(encoding="utf-8-sig").splitlines())
        lines = [(reader.line_num, cells) for cells in reader if not (cells and cells[0].startswith(COMMENT))]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise CotenantError(f"{path} cannot be read: {error}.", "A target file is CSV: " + ",".join(COLUMNS)) from None
    if not lines or tuple(lines[0][1]) not in (COLUMNS, ORIGINAL):
        raise CotenantError(f"{path} does not begin with {','.join(COLUMNS)}.", "See targets/v100.csv.")
    targets: dict[str, Target] = {}
    for number, (job, *numbers) in (line for line in lines[1:] if line[1]):
        try:
            rate, share, spread = msgspec.convert(numbers, list[Positive], strict=False)
        except ValueError:
            raise CotenantError(f"{path}, line {number}: {job} needs three positive numbers.") from None
        if job in targets:
            raise CotenantError(f"{path}, line {number}: {job} stands there twice.")
        targets[job] = Target(rate, share, spread)
    return targets


class System(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A machine as it is sold. `gpu` is a glob for the device's name in records, `devices` their number.

    `watt` is the constant power of all devices together, `price` the system's price; None if unknown.
    """

    name: str
    gpu: str
    devices: Annotated[int, msgspec.Meta(ge=0)]
    watt: Positive | None = None
    price: Positive | None = None


_SYSTEMS = msgspec.json.Decoder(list[System])


def read_systems(path: Path) -> list[System]:
    """Return the systems in a JSON file. Raises CotenantError for an invalid file, with the place of the fault."""
    try:
        return decoded(_SYSTEMS, content_of(path, follow=True))
    except OSError as error:
        raise CotenantError(f"{path} cannot be read: {error.strerror}.", "--systems names a file of systems.") from None
    except msgspec.DecodeError as error:
        raise CotenantError(f"{path}: {error}.", "Leave out what is unknown; see targets/systems.json.") from None


def system_of(systems: Sequence[System], gpu: str, devices: int) -> System | None:
    """Return the first system with `devices` devices of this name; None if there is none.

    The name of a part of a device (MIG, vGPU) contains the device's name: only a glob that names parts matches it.
    """
    fitting = (system for system in systems if system.devices == devices and (is_part(system.gpu) or not is_part(gpu)))
    return next((system for system in fitting if fnmatch.fnmatch(gpu, system.gpu)), None)
