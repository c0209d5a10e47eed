"""The axis `--precision` and $BATCH_SIZE on invented machines: which cells start, and with which arguments."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cotenant.commands.preview import whole_dry_lines
from cotenant.errors import CotenantError
from cotenant.launch.start import Resolver
from cotenant.machine.topology import Machine
from launch.resolving import resolver, with_devices
from machine.invented import GIB, machine

PRECISIONS = ["fp32", "tf32", "bf16", "fp16"]
TABLE = """
[net]
fp32 = { cpu = 2, 16gb = 128, 32gb = 296 }
bf16 = { cpu = 4, 16gb = 256 }
args.cpu = { --size = 64, --deep = 1 }
[large]
fp32 = { 80gb = 8 }
[devices.odd.net]
fp32 = 77
"""


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BASE", str(tmp_path / "base"))
    args = {"--precision": PRECISIONS, "--batch-size": "$BATCH_SIZE", "--size": 224, "--class": "$MEMORY_CLASS"}
    sized = {"--batch-size": "$BATCH_SIZE"}
    jobs = [
        {"name": "net", "cmd": "/bin/true", "cgroup": "student", "args": args},
        {"name": "large", "cmd": "/bin/true", "cgroup": "student", "args": sized},
        {"name": "plain", "cmd": "/bin/true", "cgroup": "student", "args": {"--batch-size": 64}},
        {"name": "all", "cmd": "/bin/true", "args": {"--class": "$MEMORY_CLASS"}},
    ]
    (tmp_path / "jobs.json").write_text(json.dumps(jobs))
    (tmp_path / "batch_sizes.toml").write_text(TABLE)
    monkeypatch.chdir(tmp_path)


def sized(there: Machine, *words: str, extra: tuple[str, ...] = ()) -> Resolver:
    return resolver("--jobs", "jobs.json", *words, extra=extra, there=there)


def commands(made: Resolver) -> dict[str, set[str]]:
    """Return the words of all tenants of each start, without command and seed: of a launch they are alike."""
    return {start.label: {" ".join(spec.command[1:-2]) for spec in start.specs} for start in made.starts()}


def test_a_host_without_devices_runs_the_small_sizes() -> None:
    made = sized(machine())
    assert commands(made) == {
        "net_fp32": {"--precision fp32 --batch-size 2 --class cpu --size 64 --deep 1"},
        "net_bf16": {"--precision bf16 --batch-size 4 --class cpu --size 64 --deep 1"},
        "plain": {"--batch-size 64"},
        "all": {"--class cpu"},
    }
    precisions, sizes = made.left_out()
    assert precisions == "net: cells in tf32 and fp16 are left out, as a processor trains in fp32 and bf16 alone."
    assert sizes.startswith("large: left out, as ")
    lines = list(whole_dry_lines(made.starts(), "none"))
    assert lines[2] == "  sizes    cpu: batch size 2 --size 64 --deep 1"
    assert sum(line.startswith("  sizes") for line in lines) == 4


def test_a_precision_selected_by_name_is_not_left_out() -> None:
    made = sized(machine(), "--name", "*_fp16")
    assert list(commands(made)) == ["net_fp16"]
    assert made.left_out() == ()
    assert list(commands(sized(machine(), "--name", "net", "--exclude", "net_bf16"))) == ["net_fp32"]
    with pytest.raises(CotenantError, match=r"No job is left to run\. large: left out"):
        sized(machine(), "--name", "large").starts()


def test_the_class_is_that_of_a_tenants_part_of_a_device() -> None:
    for there, words, expected in [
        (with_devices(2), (), "128 16gb"),
        (with_devices(1, memory_bytes=32 * GIB), (), "296 32gb"),
        (with_devices(1, memory_bytes=32 * GIB), ("--users", "2", "--baseline", "none"), "128 16gb"),
        # Three tenants on two devices: the device of two has the smaller parts, and all have that class.
        (with_devices(2, memory_bytes=32 * GIB), ("--users", "3", "--baseline", "whole"), "128 16gb"),
        (with_devices(1, name="odd"), (), "77 16gb"),
        (with_devices(2, memory_bytes=32 * GIB, name="odd"), ("--users", "4", "--baseline", "none"), "128 16gb"),
        (with_devices(1, memory_bytes=80 * GIB, name="odd"), ("--memory-class", "16gb"), "128 16gb"),
    ]:
        size, name = expected.split()
        line = f"--precision fp32 --batch-size {size} --size 224 --class {name}"
        made = commands(sized(there, "--name", "net_fp32", *words))
        assert all(lines == {line} for lines in made.values()), (made, words)
        assert len(made) == (2 if "whole" in words else 1)
    made = commands(sized(with_devices(1, memory_bytes=80 * GIB)))
    assert list(made) == [*(f"net_{precision}" for precision in PRECISIONS), "large", "plain", "all"]
    assert made["net_fp16"] == {"--precision fp16 --batch-size 256 --size 224 --class 80gb"}


def test_extra_arguments_win_but_may_not_contradict_a_name() -> None:
    (words,) = commands(sized(machine(), "--name", "net_fp32", extra=("--batch-size", "9", "--size=3")))["net_fp32"]
    assert words == "--precision fp32 --class cpu --deep 1 --batch-size 9 --size=3"
    with pytest.raises(CotenantError, match=r"net_fp32 trains in fp32, .* Choose --name net_bf16\.$"):
        sized(machine(), "--name", "net", extra=("--precision", "bf16"))
    with pytest.raises(CotenantError, match=r"no batch size of 'large' in bf16\. Add below \[large\]: bf16 = "):
        sized(machine(), "--name", "large", extra=("--precision=bf16",)).starts()


def test_a_part_smaller_than_every_class_leaves_out_sized_jobs() -> None:
    made = sized(with_devices(1, memory_bytes=16 * GIB), "--users", "4", "--baseline", "none", "--exclude", "all")
    assert list(commands(made)) == ["plain"]
    assert "MEMORY_CLASS" not in made.starts()[0].specs[0].environment
    (sentence,) = made.left_out()
    assert sentence.startswith("net_fp32, net_tf32, net_bf16, net_fp16, large: left out, as ")
    assert "less than 8gb (4.00 GiB of a device each); --memory-class names another class." in sentence
