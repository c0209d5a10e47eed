"""A directory with records for every command of the pages that reads some."""

from __future__ import annotations

import shutil
from pathlib import Path

from commands.calling import write
from cotenant.results.record import Record
from pages import ROOT
from report.making import beside_dram, launch, scaling, solo

NAMES = ["output", "A", "B", "DIR", "none", "unsliced", "cached", "good", "new", "night"]
NAMES += ["node1", "node2", "before", "after"]


def beside(one: str, other: str) -> list[Record]:
    """Return the records of a launch of two tenants that run these jobs."""
    of_mix = {"mix": f"{one}+{other}", "tenants": 2}
    places = [{"neighbours": [other]}, {"neighbours": [one], "tenant": 1, "vcd": "1"}]
    return [
        record
        for name, place in zip((one, other), places, strict=True)
        for record in launch(name, 0, 1, place=of_mix | place)
    ]


def make_workplace(folder: Path) -> Path:
    """Write records under all the names that the pages use for directories of them; return the workspace's output."""
    records = [record for uid in range(3) for name in ("vae", "convnet") for record in launch(name, uid)]
    records += [*solo("vae", 0), *solo("convnet", 0), *beside("vae", "convnet"), *beside("vae", "vae"), *beside_dram()]
    records += [*launch("dcgan", 0, 4, 400.0, place={"sharers": 2}), *solo("dcgan", 0, 4, 180.0)]
    records += beside_dram(job="convnet")
    output = write(folder / "workspace/output", [*records, *(scaling(k) for k in (1, 2))])
    for name in NAMES:
        (folder / name).symlink_to(output)
    shutil.copytree(ROOT / "targets", folder / "own")
    (folder / "tweaked.json").write_text((ROOT / "profiles/cpu.json").read_text())
    return output
