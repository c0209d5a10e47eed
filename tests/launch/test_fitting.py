"""`scaling` on machines of 1, 2, 3 and 8 devices: which of its cells are started; and who is launched alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cotenant.errors import CotenantError
from cotenant.isolation.plan import plan
from cotenant.launch.alone import one_of_each_kind
from cotenant.launch.duration import MOST_S
from cotenant.launch.start import Resolver
from cotenant.machine.topology import Machine
from launch.resolving import options, resolver, with_devices
from machine.invented import device, machine


def scaling(count: int, *words: str) -> Resolver:
    """For a machine of so many devices."""
    there = with_devices(count, cores=max(4, count))
    return resolver("--jobs", "scaling", *([] if "--name" in words else ["--name", "scaling"]), *words, there=there)


@pytest.fixture(autouse=True)
def _paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BASE", str(tmp_path))


def test_n_devices_run_a_cell_for_each_k_up_to_n() -> None:
    for count, left_out in {1: "2-16", 2: "3-16", 3: "4-16", 8: "9-16"}.items():
        starts = scaling(count).starts()
        assert [start.label for start in starts] == [f"scaling.c{k}" for k in range(1, count + 1)]
        commands = [start.specs[0].command for start in starts]
        assert [words[words.index("--devices") + 1] for words in commands] == [str(k) for k in range(1, count + 1)]
        sentence = f"scaling: cells of --devices {left_out} are left out, as DEVICE_TOTAL is {count}."
        assert scaling(count).left_out() == (sentence,)
    assert (len(scaling(16).starts()), scaling(16).left_out()) == (16, ())


def test_an_old_files_devices_0_of_scaling_is_a_cell_for_each_k(tmp_path: Path) -> None:
    """As the reference suite's own: there `scaling` counted devices itself. Elsewhere 0 is all of them, at once."""
    args = {"--network": "resnet101", "--devices": 0}
    names = {"scaling": "image_classification/scaling", "gpt": "natural_language_processing/gpt"}
    jobs = [
        {"name": name, "cmd": f"./{place}/pytorch/run.sh", "args": args, "cgroup": "all"}
        for name, place in names.items()
    ]
    (tmp_path / "old.json").write_text(json.dumps(jobs))
    words = ("--jobs", str(tmp_path / "old.json"), "--name")
    made = scaling(3, *words, "*")
    assert [start.label for start in made.starts()] == ["scaling.c1", "scaling.c2", "scaling.c3", "gpt"]
    assert made.left_out() == ()
    devices = [words[words.index("--devices") + 1] for words in (start.specs[0].command for start in made.starts())]
    assert devices == ["1", "2", "3", "0"]


def test_a_launch_on_the_whole_machine_has_a_rank_per_device() -> None:
    made = scaling(1, "--users", "4")
    assert [start.label for start in made.starts()] == ["scaling.c1"]
    assert made.starts()[0].specs[0].environment["DEVICE_TOTAL"] == "1"
    assert (made.tenants, scaling(0, "--users", "4").ranks, scaling(3, "--users", "2").ranks) == (4, 4, 3)


def test_use_cuda_set_by_the_caller_is_kept_without_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    for asked, given in (("", "0"), ("0", "0"), ("1", "1")):
        monkeypatch.setenv("USE_CUDA", asked)
        assert scaling(0, "--users", "1").starts()[0].specs[0].environment["USE_CUDA"] == given


def test_compiled_kernels_lie_in_one_place_for_all_launches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "TORCHINDUCTOR_CACHE_DIR"
    monkeypatch.delenv(name, raising=False)
    places = {spec.environment[name] for start in scaling(2).starts() for spec in start.specs}
    assert places == {str(tmp_path / "compiled")}
    monkeypatch.setenv(name, "/mine")
    assert name not in scaling(2).starts()[0].specs[0].environment


def test_blocks_are_the_default_baseline_of_isolated_users() -> None:
    def asked(*words: str) -> str:
        return options(*words).baseline

    assert asked() == asked("--name", "vae") == asked("--jobs", "cpu", "--users", "2") == "blocks"
    assert asked("--mix", "vae,wlm") == asked("--jobs", "cpu", "--pairs", "vae,wlm") == "blocks"
    assert asked("--users", "2", "--isolation", "none") == "none"
    assert asked("--jobs", "scaling") == asked("--isolation", "none") == asked("--baseline", "none") == "none"
    assert asked("--jobs", "cpu", "--baseline", "whole") == "whole"


def test_a_bare_run_on_processors_keeps_to_ten_minutes() -> None:
    def within_s(*words: str, extra: tuple[str, ...] = (), devices: int = 0) -> float | None:
        return options(*words, extra=extra, there=with_devices(devices)).within_s

    assert within_s() == within_s("--name", "vae", "--uid", "3") == MOST_S == 600
    for said in ("--budget 9", "--users 2", "--jobs cpu", "--mix vae,wlm", "--baseline whole"):
        assert within_s(*said.split()) is None
    assert within_s(extra=("--repeat", "9")) is within_s(devices=1) is None


FIRST, COUNTED = [(0, (0, 1))], "{} says how much is observed"


@pytest.mark.parametrize(
    ("words", "extra", "expected"),
    [
        ("--name vae", (), ("vae", True, "", FIRST)),
        ("--name vae", ("--repeat=9",), ("vae", False, COUNTED.format("--repeat"), FIRST)),
        ("--name vae", ("--skip",), ("vae", False, COUNTED.format("--skip"), FIRST)),
        ("--name vae --at-least 9", (), ("vae", False, COUNTED.format("--at-least"), FIRST)),
        ("--name vae --users 1", (), ("vae", False, "", [])),
        ("--name vae --baseline none", (), ("vae", False, "", [])),
        ("--mix vae,wlm", (), ("vae+wlm", True, "", [(0, (0, 1)), (1, (0, 1))])),
        ("--name vae --pressure dram:100", (), ("vae+pressure_dram_100", True, "", FIRST)),
    ],
)
def test_counted_observations_rule_out_blocks(words: str, extra: tuple[str, ...], expected: tuple[object, ...]) -> None:
    (start,) = resolver(*words.split(), extra=extra, there=machine(cores=4)).starts()
    goes_on = [(each.tenant, each.stands_for) for each in start.goes_on]
    assert (start.label, start.design.takes_turns, start.design.refusal, goes_on) == expected


@pytest.mark.parametrize(
    ("there", "users", "kinds"),
    [
        (machine(cores=4), 4, [(0, 1, 2, 3)]),
        (machine(nodes=2, cores=4, threads=2, devices=tuple(device(n, n // 2) for n in range(4))), 4, [(0, 1, 2, 3)]),
        (machine(cores=2, devices=(device(0), device(1, name="A100"))), 2, [(0,), (1,)]),
        (machine(cores=4), 1, [(0,)]),
    ],
)
def test_one_tenant_of_each_kind_of_slice_goes_on_alone(
    there: Machine, users: int, kinds: list[tuple[int, ...]]
) -> None:
    slices = plan(there, users).slices
    assert [each.stands_for for each in one_of_each_kind(slices, there)] == kinds


def test_devices_have_a_default_settling_and_observation_time() -> None:
    there = machine(cores=4, devices=(device(0),))

    def lasting(*words: str, extra: tuple[str, ...] = (), on: Machine = there) -> tuple[float, float]:
        limits = options("--jobs", "scaling", *words, extra=extra, there=on).limits
        return limits.settle_s, limits.at_least_s

    assert lasting() == (3, 10)
    assert lasting(on=machine(cores=4)) == (0, 0)
    assert lasting("--settle", "1m", "--at-least", "2", on=machine(cores=4)) == (60, 2)
    assert lasting("--settle", "0", "--at-least", "0") == (0, 0)
    assert lasting("--budget", "60s") == lasting(extra=("--repeat", "9")) == lasting(extra=("--repeat=9",)) == (3, 0)
    for words, extra in ((["--budget", "9"], ()), ([], ("--repeat", "9"))):
        with pytest.raises(CotenantError, match="both say how much is observed"):
            lasting("--at-least", "5", *words, extra=extra)
