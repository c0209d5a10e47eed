"""Targets and systems: those that come with the suite, and those of a user's file."""

from __future__ import annotations

import json
from pathlib import Path

from commands.calling import refusal
from cotenant.results.targets import System, Target, read_systems, save_targets, system_of, targets_named

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ROOT / "targets"


def test_shipped_targets_cover_every_job_of_the_reference_suite() -> None:
    jobs = [job["name"] for job in json.loads((ROOT / "baselines.json").read_text())]
    for model, job, rate in (
        ("V100", "toy_reg", 300000),
        ("MI50", "dcgan_all", 261.60),
        ("rtx", "atari", 5),
        ("rtx_2019", "vae", 7972.69),
    ):
        targets = targets_named(model, SHIPPED)
        assert list(targets) == [*jobs, "scaling"]
        assert (targets["loader"].most_spread, targets["scaling"]) == (0.1, Target(1.0, 0.85, 0.02))
        assert targets[job].rate == rate


def test_what_is_saved_is_read_back(tmp_path: Path) -> None:
    made = {"vae": Target(4711.25, 0.5, 0.05), "a,b": Target(1.0, 0.9, 0.1)}
    save_targets(tmp_path / "mine.csv", made)
    assert targets_named(str(tmp_path / "mine.csv"), SHIPPED) == made
    # The reference suite's usual limits: half of the target, and a spread of 5 %.
    save_targets(tmp_path / "rates.csv", {"vae": Target(4711.25)})
    assert (tmp_path / "rates.csv").read_text().splitlines()[1] == "vae,4711.25,0.5,0.05"


def test_a_target_file_of_the_reference_suite_is_read_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("bench,target,perf_target,sd_target\nloader,1200.00,0.5,0.10\n")
    assert targets_named(str(tmp_path / "x.csv"), SHIPPED) == {"loader": Target(1200.0, 0.5, 0.1)}


def test_a_broken_file_is_an_error_with_its_line(tmp_path: Path) -> None:
    head, path = "job,target,perf_target,sd_target\n", tmp_path / "x.csv"
    for text, sentence in (
        ("job,rate\n", f"does not begin with {head.strip()}"),
        ("\x00\ufffe", "does not begin"),
        (f"{head}vae,1\n", "line 2: vae needs three positive numbers"),
        (f"{head}vae,x,1,1\n", "line 2: vae needs three positive numbers"),
        (f"{head}\nvae,0,1,1\n", "line 3: vae needs three positive numbers"),
        (f"{head}vae,1,1,1\n\nvae,1,1,1\n", "line 4: vae stands there twice"),
    ):
        path.write_text(text)
        assert sentence in refusal(targets_named, str(path), SHIPPED)


def test_an_unknown_model_names_the_known_ones(tmp_path: Path) -> None:
    assert "Did you mean 'V100'" in refusal(targets_named, "V10", SHIPPED)
    assert "Known: MI50, RTX, RTX_2019, V100" in refusal(targets_named, "abacus", SHIPPED)
    assert "There is no file" in refusal(targets_named, str(tmp_path / "none.csv"), SHIPPED)


def test_shipped_systems_have_unique_names_and_match_devices() -> None:
    systems = read_systems(SHIPPED / "systems.json")
    assert len({system.name for system in systems}) == len(systems)
    assert all(system.price is None for system in systems)  # only its buyer knows a system's price
    assert all(system.watt is not None for system in systems)
    for gpu, devices, name in (
        ("Tesla V100-PCIE-16GB", 1, "V100"),
        ("Tesla V100-SXM2-32GB", 8, "8x V100 SXM2"),
        ("NVIDIA A100 80GB PCIe", 1, "A100 PCIe 80GB"),
        ("NVIDIA L4", 1, "L4"),
        ("AMD Instinct MI300X", 1, "MI300X"),
    ):
        assert system_of(systems, gpu, devices).name == name
        assert system_of(systems, gpu, 3) is None
    for part in ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", "NVIDIA A100-SXM4-40GB MIG 3g.20gb", "GRID V100-PCIE-16Q"):
        assert system_of(systems, part, 1) is None, "a seventh of a device is no system of a whole one"
        own = System("mine", "*MIG *g.*gb", 1)
        assert system_of([*systems, own], part, 1) == (own if "MIG" in part else None)


def test_own_descriptions_and_wrong_ones_with_their_place(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text('[{"name": "mine", "gpu": "*", "devices": 2, "watt": 1000, "price": 9999.5}]')
    assert read_systems(path) == [System("mine", "*", 2, 1000, 9999.5)]
    for text, sentence in (
        ("", "mine.json"),
        ("{}", "Expected `array`"),
        ('[{"name": "x"}]', "missing required field `gpu` - at `$[0]`"),
        ('[{"name": "x", "gpu": "*", "devices": 1, "what": 3}]', "unknown field `what`"),
        ('[{"name": "x", "gpu": "*", "devices": 1, "watt": 0}]', "Expected `float` > 0.0 - at `$[0].watt`"),
        ('[{"name": "x", "gpu": "*", "devices": -1}]', "Expected `int` >= 0 - at `$[0].devices`"),
        ('[{"name": "Caf\xe9"}]', "utf-8"),
    ):
        path.write_text(text, encoding="latin-1")
        assert sentence in refusal(read_systems, path)
    assert "cannot be read" in refusal(read_systems, tmp_path / "none.json")
