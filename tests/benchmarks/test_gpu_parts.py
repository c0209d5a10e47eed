"""What the parts of the acceptance run conclude from numbers, on invented ones at both sides of each limit."""

from __future__ import annotations

import importlib
import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from benchmarks.conftest import BENCHMARKS

Part = Callable[[str], ModuleType]


@pytest.fixture
def part(monkeypatch: pytest.MonkeyPatch) -> Part:
    monkeypatch.syspath_prepend(BENCHMARKS)
    return lambda name: importlib.import_module(f"device.{name}")


def given(part: Part, folder: Path, **machine: Any) -> Any:
    (folder / "work").mkdir()
    return part("part").Given(
        "probes", part("book").Book(folder), {"kind": "cuda", "torch": "2.14.1", **machine}, folder / "work", False, 60
    )


def checks(given: Any) -> dict[str, tuple[str, str]]:
    return {row["check"]: (row["verdict"], row["sentence"]) for row in given.book.rows(given.part, "checks")}


@pytest.mark.parametrize(
    "words, verdict",
    [
        ([], ("FAIL", "It looked at nothing.")),
        (["PASS", "SKIP"], ("PASS", "1 of 2 checks passed; not looked at: b.")),
        (["SKIP", "SKIP"], ("SKIP", "so.")),
        (["PASS", "FAIL"], ("FAIL", "b: so.")),
        (["FAIL", "FAIL", "PASS"], ("FAIL", "a: so. (2 of 3 checks failed)")),
    ],
)
def test_a_part_is_what_its_checks_are(words: list[str], verdict: tuple[str, str], part: Part) -> None:
    rows = [{"check": name, "verdict": word, "sentence": "so."} for name, word in zip("abc", words, strict=False)]
    found = part("book").overall(rows)
    assert (found.word, found.sentence) == verdict


def test_what_breaks_in_a_check_fails_it_alone(part: Part, tmp_path: Path) -> None:
    here = given(part, tmp_path)
    for name, error in {
        "a": ValueError("two\nlines"),
        "b": part("book").Skip("There is none."),
        "c": ModuleNotFoundError("No module named 'msgspec'", name="msgspec"),
    }.items():
        with here.looking_at(name):
            raise error
    with pytest.raises(ModuleNotFoundError), here.looking_at("d"):
        raise ModuleNotFoundError("No module named 'cotenant.moved'", name="cotenant.moved")
    found = checks(here)
    assert found.keys() == {"a", "b", "c"}
    assert found["a"] == ("FAIL", "ValueError: two lines")
    assert found["b"] == ("SKIP", "There is none.")
    assert found["c"][0] == "SKIP"
    assert "pip install msgspec" in found["c"][1]


@pytest.mark.parametrize(
    "text, chosen",
    [
        ("left,facts,left", (["left", "facts"], ())),
        ("families", (["families"], ())),
        ("facts, families:bert_base,gnmt ,left", (["facts", "families", "left"], ("bert_base", "gnmt"))),
    ],
)
def test_parts_and_families_are_chosen(text: str, chosen: tuple[list[str], tuple[str, ...]], part: Part) -> None:
    assert part("plan").chosen_parts(text) == chosen


def test_all_parts_end_within_ten_minutes(part: Part) -> None:
    plan = part("plan")
    assert sum(plan.deadline_s(each.seconds, False) for each in plan.PARTS.values()) < 660
    assert sum(each.seconds for each in plan.PARTS.values()) <= 500


def test_what_a_run_has_left_goes_to_the_parts_that_have_more_to_measure(part: Part) -> None:
    planned_s, names = part("plan").planned_s, list(part("plan").PARTS)
    alone = planned_s("cotenancy", False, 20)
    assert 500 < alone < part("plan").deadline_s(alone, False) <= 580
    assert planned_s("cotenancy", True, 20) == 90
    assert planned_s("silent", False, 20) == 30
    # Of a whole run: 75 s on the way, and 335 s of others to come, two of which grow as well.
    assert planned_s("tasks", False, 75, names[names.index("tasks") + 1 :]) == pytest.approx(110 + 40 / 3)
    assert planned_s("cotenancy", False, 450, ["left"]) == 140, "never less than it plans with"


@pytest.mark.parametrize(
    "wheel, fits",
    [
        ("gymnasium-1.4.0-py3-none-any.whl", True),
        ("msgspec-0.22.0-cp312-cp312-manylinux2014_x86_64.manylinux_2_17_x86_64.whl", True),
        ("msgspec-0.22.0-cp311-cp311-manylinux_2_17_x86_64.whl", False),
        ("msgspec-0.22.0-cp312-cp312-manylinux_2_17_aarch64.whl", False),
        ("psutil-7.2.2-cp36-abi3-manylinux2010_x86_64.whl", True),
        ("new-1.0-cp313-abi3-manylinux2010_x86_64.whl", False),
        ("tool-1.0-py3-none-manylinux_2_17_x86_64.whl", True),
        ("old-1.0-py2-none-any.whl", False),
    ],
)
def test_a_wheel_fits_by_its_name(wheel: str, fits: bool, part: Part) -> None:
    assert part("wheels").fits(wheel, (3, 12), "linux-x86_64") is fits


def test_wheels_of_missing_packages_alone_are_unpacked(part: Part, tmp_path: Path) -> None:
    for name in ("msgspec-9-py3-none-any.whl", "cotenant_absent-1-py3-none-any.whl", "far_away-1-cp39-cp39-any.whl"):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr(f"{name.split('-')[0]}/__init__.py", "")
    assert part("wheels").unpack_missing(tmp_path, tmp_path / "site") == ["cotenant_absent"]
    assert [path.name for path in (tmp_path / "site").iterdir()] == ["cotenant_absent"]
    assert part("wheels").unpack_missing(tmp_path / "none", tmp_path / "site") == []
    sentences = [part("part").lacking(ModuleNotFoundError(name=name)) for name in ("PIL.Image", "pynvml")]
    assert sentences == [
        "The package PIL is missing: pip install pillow.",
        "The package pynvml is missing: pip install nvidia-ml-py, or carry `make gpu-wheels` here.",
    ]


def test_tables_show_every_column_and_no_bars(part: Part) -> None:
    table = part("table")
    rows = [{"part": "a", "table": "b", "x": 1.23456, "y": "p|q\nr"}, {"part": "a", "table": "b", "z_s": [2e6, None]}]
    assert table.markdown(rows) == [
        "| x | y | z s |",
        "|---|---|---|",
        "| 1.235 | p\\|q r |  |",
        "|  |  | 2,000,000,  |",
    ]
    assert table.page_name({"device": "NVIDIA H100 80GB HBM3", "date": "2026-11-23"}).startswith(
        "nvidia-h100-80gb-hbm3-"
    )


class FakeNvml:
    """Bindings of which some calls are missing, refused, broken, or answer with structures."""

    class NVMLError(Exception):
        value = 3

    class NVMLError_NotSupported(NVMLError):  # noqa: N801, N818
        pass

    def nvmlSystemGetDriverVersion(self) -> bytes:  # noqa: N802
        return b"580.1"

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return 1

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:  # noqa: N802
        return "handle"

    def nvmlDeviceGetMemoryInfo(self, handle: str) -> Any:  # noqa: N802
        return SimpleNamespace(total=8, used=2)

    def nvmlDeviceGetMigMode(self, handle: str) -> list[int]:  # noqa: N802
        raise self.NVMLError_NotSupported("Not Supported")

    def nvmlDeviceGetClockInfo(self, handle: str, kind: int) -> int:  # noqa: N802
        return 1980 + kind

    def nvmlDeviceGetEccMode(self, handle: str) -> int:  # noqa: N802
        raise AttributeError("symbol not found")

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle: str) -> int:  # noqa: N802
        return 4


def test_answers_of_nvml_are_kept_as_they_come(part: Part) -> None:
    nvml = part("nvml")
    found = nvml.answers(FakeNvml())
    (device,) = found["devices"]
    assert found["system"]["nvmlSystemGetDriverVersion"]["answer"] == "580.1"
    assert device["nvmlDeviceGetMemoryInfo"]["answer"] == {"total": 8, "used": 2}
    assert device["nvmlDeviceGetClockInfo(2)"]["answer"] == 1982
    refused = device["nvmlDeviceGetMigMode"]
    assert (refused["error"], refused["value"]) == ("NVMLError_NotSupported", 3)
    lacking = nvml.lacking(found)
    assert "nvmlDeviceGetEccMode" in lacking
    assert "nvmlDeviceGetPowerUsage" in lacking
    # Refused by the device is its answer, and of two names for one thing one is enough.
    assert not {"nvmlDeviceGetMigMode", "nvmlDeviceGetCurrentClocksThrottleReasons"} & set(lacking)


def test_every_call_of_nvml_in_our_code_is_asked_and_exists(part: Part) -> None:
    import pynvml

    nvml = part("nvml")
    source = "".join(
        path.read_text()
        for path in (BENCHMARKS.parent / "common" / "cotenant").glob("m*/*.py")
        if "nvml" in path.read_text()
    )
    asked = {name for name, _ in (*nvml.USED, *nvml.FURTHER)} | set(nvml.SYSTEM)
    called = set(re.findall(r'"(nvml(?:Device|System)\w+)"', source)) - {
        "nvmlDeviceGetHandleByIndex",
        "nvmlDeviceGetHandleByUUID",
        "nvmlDeviceGetFieldValues",
    }
    assert called <= asked
    assert not [name for name in asked if not hasattr(pynvml, name)]


def test_errors_of_precisions(part: Part) -> None:
    probes = part("probes")
    assert probes.judge_error(5e-5, 0, 5e-5)[0]
    assert not probes.judge_error(5.1e-5, 0, 5e-5)[0]
    assert probes.judge_error(1e-4, 5e-5, 3e-3)[0]
    exact = probes.judge_error(1e-6, 5e-5, 3e-3)
    assert (exact[0], "something more exact ran" in exact[1]) == (False, True)
    assert not probes.judge_error(float("inf"), 0, 1)[0]
    assert not probes.judge_error(float("nan"), 0, 1)[0]
    # fp32 ends where tf32 begins.
    assert probes.ERRORS["fp32"][1] == probes.ERRORS["tf32"][0]


def test_lengths_and_who_waits(part: Part) -> None:
    probes = part("probes")
    assert [probes.judge_ratio(20, seen, 0.01)[0] for seen in (19.7, 19.81, 20.19, 20.3)] == [False, True, True, False]
    assert [probes.judge_issued(*shares)[0] for shares in ((0.9, 0.05), (0.89, 0.01), (0.95, 0.06))] == [
        True,
        False,
        False,
    ]
    seen = SimpleNamespace(start_ns=100, end_ns=200, issued_ns=110)
    assert probes.late_share(seen) == pytest.approx(0.9)
    assert probes.late_share(SimpleNamespace(start_ns=1, end_ns=2)) is None


def test_energy_and_power_are_of_one_window(part: Part) -> None:
    meters = part("meters")
    # 700 W; the counter moves twice a second, and looks are more frequent.
    looks = [(second / 10, 700.0, 700.0 * (second // 5) / 2) for second in range(52)]
    counted, integrated, seconds = meters.energy_beside_power(looks)
    assert (counted, seconds) == (pytest.approx(3150), pytest.approx(4.5))
    assert integrated == pytest.approx(counted)
    assert meters.energy_beside_power([(at, None, joules) for at, _, joules in looks]) is None
    assert meters.energy_beside_power(looks[:6]) is None


def test_a_budget_becomes_batches(part: Part) -> None:
    task = part("task")
    assert task.fitting(3.0, 1_000_000, 12) == 250
    assert task.fitting(3.0, 2_000_000_000, 12) == 1
    assert task.fitting(3.0, None, 12) == 1


def record(**fields: Any) -> dict[str, Any]:
    return {
        "outcome": "completed",
        "message": "",
        "unit": "image",
        "statistics": {"median": 100.0},
        "findings": [],
        "meters": {"compute": {"mfu": 0.4}},
        "observed": {"dtype": "bf16"},
        "rendezvous": {"overlap": 1.0},
        **fields,
    }


ERROR = {"rule": "credited", "severity": "error", "sentence": "Credited and not done."}


@pytest.mark.parametrize(
    "fields, word",
    [
        ({}, "PASS"),
        ({"meters": {}}, "PASS"),
        ({"meters": {"compute": {"mfu": 1.01}}}, "FAIL"),
        ({"meters": {"compute": {"mfu": 1.5, "mfu_least": 0.4}}}, "PASS"),
        ({"observed": {"dtype": "fp32"}}, "FAIL"),
        ({"findings": [ERROR]}, "FAIL"),
        ({"findings": [ERROR | {"severity": "warning"}]}, "PASS"),
        ({"statistics": None}, "FAIL"),
        ({"outcome": "device_out_of_memory"}, "FAIL"),
        ({"outcome": "missing_package"}, "SKIP"),
    ],
)
def test_tasks_are_judged(fields: dict[str, Any], word: str, part: Part) -> None:
    assert part("tasks").judge(part("jobs").JOBS["dcgan_bf16"], record(**fields))[0] == word


def test_a_small_device_gets_smaller_batches(part: Part, tmp_path: Path) -> None:
    here, convnet = given(part, tmp_path), part("jobs").JOBS["convnet"]
    assert convnet.words(here)[:2] == ["--batch-size", "64"]
    here.machine["memory_bytes"] = 16 << 30
    assert convnet.words(here)[:3] == ["--batch-size", "16", "--arch"]
    here.quick = True
    assert convnet.words(here)[:2] == ["--batch-size", "2"]


def test_jobs_are_of_tasks_that_exist_and_none_is_left_out(part: Part) -> None:
    jobs = part("jobs")
    assert {name for name, job in jobs.JOBS.items() if not Path(job.main).exists()} == set()
    assert set(jobs.SMALL) < set(jobs.JOBS)
    folders = {str(path.parents[1].relative_to(jobs.TASKS)) for path in jobs.TASKS.glob("*/*/pytorch/main.py")}
    profiles = (jobs.ROOT / "profiles" / f"{name}.json" for name in part("families").PROFILES)
    cells = (cell for path in profiles if path.exists() for cell in json.loads(path.read_text()))
    of_families = {str(Path(cell["cmd"]).parents[1]) for cell in cells}
    # Files alone, as the loader's ceilings, are measured by `input`; a neighbour of known pressure is no job by itself.
    folders = {folder for folder in folders if not folder.startswith("pressure/")}
    assert folders - {job.task for job in jobs.JOBS.values()} - of_families == {"ceilings/reading"}


def test_the_fastest_form_and_graphs_that_come_too_late(part: Part) -> None:
    judge = part("forms").judge
    rows = [
        {"form": "fp32", "rate": 10.0, "outcome": "completed"},
        {"form": "bf16", "rate": 25.0, "outcome": "completed"},
    ]
    assert judge(rows) == (True, "bf16 is fastest, 2.50 times fp32.")
    assert judge([*rows, {"form": "tf32", "rate": 12.0, "errors": "wrong"}]) == (False, "tf32: wrong")
    graph = {"form": "bf16 graph", "rate": None, "outcome": "It cannot be recorded.", "errors": ""}
    assert judge([*rows, graph])[1].endswith("2.50 times fp32; without a rate: bf16 graph.")
    broken = part("forms").broken
    ends = ("completed", "unsupported", "failed")
    assert [broken(record(outcome=end, message="Why.")) for end in ends] == ["", "", "failed: Why."]
    assert judge([{"form": "fp32", "rate": None, "outcome": "no memory"}]) == (False, "No form has a rate: no memory.")


def test_the_busy_share_is_of_a_union(part: Part) -> None:
    silent = part("silent")
    assert silent.covered([(0, 4), (1, 2), (3, 6), (8, 9)]) == 7
    assert silent.covered([]) == 0
    calm = {"waits": "", "waited_share": 0.5, "busy_share": 0.9}
    assert silent.judge("vae", calm)[0]
    assert "host-bound" in silent.judge("vae", calm | {"waited_share": 0.04})[1]
    waiting = calm | {"waits": "main.py:7 loss.item()", "busy_share": None}
    assert silent.judge("vae", waiting) == (False, "A step waits for the device at main.py:7 loss.item().")
    assert silent.judge("toy_reg", waiting)[0]


def test_the_harness_and_pinned_memory(part: Part) -> None:
    found = {"rate_over_bare": 0.99, "low": 0.98, "high": 0.995}
    assert part("harness").judge(found, 0.995)[0]
    assert not part("harness").judge(found | {"high": 0.9949}, 0.995)[0]
    judge = part("input").judge
    assert judge(4100, 2000, 4096, "pinned")[0]
    assert not judge(4090, 900, 4096, "pinned")[0]
    assert not judge(6000, 4000, 4096, "pinned")[0]


@pytest.mark.parametrize(
    "records, stp, right, word",
    [
        ([record(), record()], 1.4, True, "STP 1.40, fairness 1.00"),
        ([record(), record()], None, True, "fairness"),
        ([record(), record()], 2.3, False, "they cannot"),
        ([record()], None, False, "1 of 2 tenants completed; a record is missing"),
        ([record(), record(outcome="timeout", message="late")], None, False, "timeout: late"),
        ([record(), record(findings=[ERROR])], 1.4, False, "Credited and not done."),
    ],
)
def test_tenants_of_one_device_are_judged(
    records: list[dict[str, Any]], stp: float | None, right: bool, word: str, part: Part
) -> None:
    cotenancy = part("cotenancy")
    row = cotenancy.shared_row(records, None if stp is None else 200 / stp)
    assert row["fairness"] == 1
    judged = cotenancy.judge(records, 2, row)
    assert judged[0] is right
    assert word in judged[1]


def test_a_job_that_no_part_of_a_device_holds_is_left_out(part: Part) -> None:
    too_large = part("cotenancy").too_large
    full = record(outcome="device_out_of_memory", message="CUDA out of memory.")
    aborted = record(outcome="aborted", message="Tenant 0 ended before GO.")
    assert too_large([full, aborted], 2) == "It does not fit its part of the device: CUDA out of memory."
    # Alone it has the whole device.
    assert too_large([full], 1) == ""
    assert too_large([full, record(outcome="failed", message="Why.")], 2) == ""
    assert too_large([record(), record()], 2) == ""


def test_what_one_tenant_does_to_another(part: Part) -> None:
    judge = part("cotenancy").judge_deed
    assert judge("hog", "device_out_of_memory", "completed")[0]
    assert not judge("hog", "device_out_of_memory", "device_out_of_memory")[0]
    assert not judge("hog", "completed", "completed")[0]
    assert judge("die", "failed", "completed")[0]


def test_old_versions_of_torch_are_known(part: Part) -> None:
    look = part("look")
    assert [look.old(version) for version in ("2.10.1", "2.11.0+cu130", "2.14.1", "3.0.0a0")] == [
        True,
        False,
        False,
        False,
    ]


def tenant(name: str, number: int, rate: float, outcome: str = "completed", peak_mib: int = 900) -> dict[str, Any]:
    return record(
        name=name,
        tenant=number,
        outcome=outcome,
        statistics={"median": rate},
        isolation={"backend": "v2", "counters": {"memory_peak_bytes": peak_mib << 20}},
    )


def test_the_course_of_sharing_a_device(part: Part, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With an invented runner: which launches there are, what is divided by what, and what waits for its subject."""
    cotenancy, here = part("cotenancy"), given(part, tmp_path)
    here.part = "cotenancy"
    commands: list[tuple[list[str], tuple[str, ...]]] = []

    def launched(folder: Path, jobs: Any, flags: Any, limit_s: float, **variables: str) -> list[dict[str, Any]]:
        commands.append(([job["name"] for job in jobs], tuple(flags)))
        users = int(flags[flags.index("--users") + 1])
        if (deed := jobs[0]["name"]) in ("hog", "die"):
            doer = tenant(deed, 0, 1, "device_out_of_memory" if deed == "hog" else "failed")
            return [doer, tenant(deed, 1, 1)]
        return [tenant(job["name"], number, 120 / users) for job in jobs for number in range(users)]

    monkeypatch.setattr(cotenancy, "launched", launched)
    monkeypatch.setattr(cotenancy.shutil, "which", lambda name: None)
    here.seconds = 1e6
    cotenancy.run(here)
    found = checks(here)
    # A driver without the daemon's program shares in turns alone.
    skipped = {name for name, (word, _) in found.items() if word == "SKIP"}
    assert skipped == {"vae K=4 mps", "vae K=4 mps:25", "die mps", "dcgan_bf16 K=4 mps", "convnet K=4 mps"}
    assert {word for name, (word, _) in found.items() if name not in skipped} == {"PASS"}
    assert found["vae K=4 time"][1].startswith("STP 1.00, fairness 1.00")
    commands.clear()
    monkeypatch.setattr(cotenancy.shutil, "which", lambda name: f"/bin/{name}")
    here.book.add("cotenancy", "begin")
    cotenancy.run(here)
    shares = [flags[flags.index("--share") + 1] for _, flags in commands]
    # One of each kind comes first.
    assert shares == ["time"] * 2 + ["mps", "mps:25"] + ["time"] * 6 + ["mps"] * 3 + ["time"] * 3
    assert all("--timeout" in flags for _, flags in commands), "one that hangs would take the time of all others"
    # Each job is alone before it shares.
    users = [(job, flags[flags.index("--users") + 1]) for (job,), flags in commands]
    assert all(users.index((job, "1")) < users.index((job, "4")) for job in ("vae", "dcgan_bf16", "convnet"))
    assert {word for word, _ in checks(here).values()} == {"PASS"}
    # Without time nothing is started.
    here.seconds, here.book = 0, part("book").Book(tmp_path / "work")
    cotenancy.run(here)
    assert {word for word, _ in checks(here).values()} == {"SKIP"}
    # What time has cut off says nothing of its tenants.
    monkeypatch.setattr(cotenancy, "launched", lambda *given: [tenant("vae", 0, 1, "interrupted")])
    with pytest.raises(part("book").Skip, match="No time was left for its end"):
        cotenancy.together(here, ["vae"], 2, "time", {})


def test_neighbours_on_a_device_achieve_half_at_half_a_level(
    part: Part, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pressure, here = part("pressure"), given(part, tmp_path)
    here.part, here.seconds = "pressure", 1e6
    halves = {"pcie": 10.0, "sm": 300.0, "hbm": 900.0, "l2": 0.0, "launch": 1.2}
    second, launches = 10**9, list[tuple[Any, Any]]()

    def measured(main: str, words: tuple[str, ...], how: Any) -> dict[str, Any]:
        assert words[:2] == ("--level", "50 100")
        resource = Path(main).parts[-3]
        items = [halves[resource], 2.0 if resource == "launch" else 600.0]
        seen = [{"items": of, "start_ns": 0, "end_ns": second} for of in (items[0], items[1], items[1] + 1)]
        made = record(observations=seen, unit="GB")
        made["observed"] |= {"levels": [50, 100, 100, 0]}
        return made

    def launched(folder: Path, jobs: Any, flags: Any, limit_s: float) -> list[dict[str, Any]]:
        launches.append((jobs[1], flags))
        blocks = [{"level": level, "rate": rate} for level, rate in ((0, 10.0), (100, 4.0), (0, None), (100, 6.0))]
        names = ("pressure_sm", "vae.in.vae+sm", "probe_sm.in.probe_sm+sm")
        return [
            record(name=name, meters={"pressure": {"blocks": [] if name == "pressure_sm" else blocks}})
            for name in names
        ]

    monkeypatch.setattr(pressure, "preload", lambda vision: None)
    monkeypatch.setattr(pressure, "measured", measured)
    monkeypatch.setattr(pressure, "launched", launched)
    pressure.run(here)
    found = checks(here)
    assert {name: word for name, (word, _) in found.items() if "beside" not in name} == {
        "pcie": "FAIL",
        "sm": "PASS",
        "hbm": "FAIL",
        "l2": "FAIL",
        "launch": "PASS",
    }
    assert found["sm"][1] == "600.5 GB/s, and 0.50 of it at half a level."
    assert found["vae beside sm"] == ("PASS", "They keep vae.in.vae+sm 0.50, probe_sm.in.probe_sm+sm 0.50.")
    entry, flags = launches[1]
    assert (entry["sense"], entry["pressure"]) == (["vae"], ["sm:0,100"])
    assert flags[-2:] == ["--share", "time"]
    monkeypatch.setattr(pressure, "launched", lambda *given: [record(name="vae.in.vae+sm", outcome="failed")])
    pressure.beside(here, "sm")
    assert checks(here)["vae beside sm"][0] == "FAIL"


def test_users_of_one_device_are_counted_up_under_each_mode(
    part: Part, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    share, here = part("share"), given(part, tmp_path)
    here.part, here.seconds = "share", 1e6
    launches: list[tuple[str, int, str]] = []

    def together(given: Any, names: Any, users: int, mode: str, alone: Any, known: Any) -> None:
        assert known[names[0]].main.endswith("main.py")
        launches.append((names[0], users, mode))
        held.append(dict(alone))
        given.row("shared", job=names[0], K=users, mode=mode, rates=[8.0])

    words = iter(("PASS", "FAIL", "SKIP") * 6)
    held: list[dict[str, float]] = []

    def matrix(asked: Any, plan: Any) -> Any:
        return (share.faults.Line(asked.modes[0], fault, next(words), "so.") for fault in asked.faults)

    monkeypatch.setattr(share, "together", together)
    monkeypatch.setattr(share.faults, "planned", lambda users: {})
    monkeypatch.setattr(share.faults, "matrix", matrix)
    share.run(here)
    assert len(launches) == 5 * 10
    assert [launch[1:] for launch in launches if launch[0] == "decode"][:4] == [
        (1, "time"),
        (2, "time"),
        (2, "mps"),
        (2, "mps:50"),
    ]
    assert [row["verdict"] for row in here.book.rows("share", "faults")] == ["PASS", "FAIL", "SKIP"] * 6
    assert checks(here)["faults"][0] == "PASS", "or one that lacked time would be missing for ever"
    # Started again it goes on behind what it has, with the rates alone of before.
    share.run(here)
    assert (len(launches), next(words, None)) == (5 * 10, None)
    kept = [line for line in here.book.path.read_text().splitlines() if json.loads(line).get("K") in (None, 1)]
    here.book.path.write_text("\n".join(kept))
    share.run(here)
    assert (len(launches), held[-1]) == (5 * 10 + 5 * 9, dict.fromkeys(share.SHARED, 8.0))
    # On a processor there is nothing to look at.
    here.machine["kind"] = "cpu"
    with pytest.raises(part("book").Skip, match="It needs a device"):
        share.run(here)


def test_a_fault_is_judged_by_both_ends_and_by_the_neighbours_rate(part: Part) -> None:
    faults = part("share").faults
    quiet = [tenant("none", user, 100.0) for user in range(3)]
    dead = [tenant("die", 0, 1, "failed"), tenant("die", 1, 80.0), tenant("die", 2, 80.0)]
    line = faults.judged("slices", "die", dead, quiet)
    assert (line.verdict, line.doer, line.neighbours) == ("PASS", "failed", ("completed",) * 2)
    assert line.kept == pytest.approx(0.8)
    assert line.why == "kill -9 of one user: it ended as failed, 2 of 2 neighbours completed."
    both = [dead[0], tenant("die", 1, 80.0, "failed"), dead[2]]
    assert faults.judged("mps", "die", both, quiet).verdict == "FAIL"
    assert faults.judged("time", "hog", quiet, quiet).verdict == "FAIL"
    assert faults.judged("time", "die", dead[:2], quiet).verdict == "FAIL"
    assert faults.judged("time", "flood", quiet, quiet).verdict == "PASS"
    skipped = {(mode, fault): faults.why_not(mode, fault, 0) for mode in faults.MODES for fault in faults.FAULTS}
    assert {cell for cell, why in skipped.items() if not why} == {
        ("slices", word) for word in ("die", "hog", "bandwidth")
    }
    assert "hosts without a device" in faults.why_not("slices", "die", 1)
    assert faults.why_not("time", "long", 1) == ""


def test_the_course_of_other_parts(part: Part, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = given(part, tmp_path)
    here.seconds = 1e6
    forms, silent, harness, tasks, input_ = map(part, ("forms", "silent", "harness", "tasks", "input"))
    for module in (forms, silent, harness, tasks):
        monkeypatch.setattr(module, "preload", lambda vision=True: None)
    whole = record(compilations=[3, 3], observations=[], device_memory={})
    seen: list[list[str]] = []

    def measured_here(main: str, words: list[str], how: Any) -> dict[str, Any]:
        seen.append(words)
        return whole

    monkeypatch.setattr(forms, "measured_here", measured_here)
    monkeypatch.setattr(
        forms, "flags_of", lambda main: frozenset({"--precision", "--channels-last", "--no-channels-last", "--compile"})
    )
    monkeypatch.setattr(forms, "forget", lambda: None)
    monkeypatch.setattr(forms, "in_child", lambda work, limit_s, log: work())
    forms.run(here)
    assert ["--batch-size", "64", "--arch", "resnet101", "--arch", "resnet50", "--precision", "tf32"] in seen
    graphs = {row["outcome"] for row in here.book.rows("probes", "forms") if row["form"] == "bf16 graph"}
    assert graphs == {"the task has no --graph yet"}
    assert checks(here)["dcgan compiled"] == ("PASS", "0 graphs were compiled inside observations.")
    compiled = [row["job"] for row in here.book.rows("probes", "forms") if row["form"] == "bf16 compiled"]
    assert compiled == ["dcgan", "convnet", "ssd", "gpt"]
    whole["compilations"] = [3, 4]
    forms.late(here, "dcgan")
    forms.measure(here, "dcgan", forms.COMPILED)
    forms.late(here, "dcgan")
    assert checks(here)["dcgan compiled"][0] == "FAIL"

    found = {"waits": "", "waited_share": 0.5, "busy_share": 0.9, "step_ms": 1.0}
    monkeypatch.setattr(silent, "in_child", lambda work, limit_s, log: found)
    silent.run(here)
    monkeypatch.setattr(
        harness, "in_child", lambda work, limit_s, log: {"rate_over_bare": 1.0, "low": 0.9, "high": 1.1, "pairs": 9}
    )
    harness.run(here)
    monkeypatch.setattr(tasks, "measured", lambda main, words, how: record(observations=[], device_memory={}))
    tasks.run(here)
    words = {name: word for name, (word, _) in checks(here).items()}
    assert {words[name] for name in ("vae", "recom", "toy_reg", "ssd")} == {"PASS"}
    # The invented record is one of bf16.
    assert words["wlm_fp16"] == "FAIL"

    peaks = [tenant("pinned", 0, 1, peak_mib=5000), tenant("pinned", 1, 1)]
    monkeypatch.setattr(input_, "launched", lambda *given: peaks)
    input_.pinned(here)
    assert checks(here)["pinned memory"][0] == "PASS"
    small = tenant("pinned", 0, 1, "out_of_memory") | {"message": "It needed more."}
    monkeypatch.setattr(input_, "launched", lambda *given: [small, tenant("pinned", 1, 1)])
    with pytest.raises(part("book").Skip, match=r"slices are too small for 4096 MiB of pinned pages; .* needed more"):
        input_.pinned(here)


FAMILY = {"name": "net", "cmd": "./a/b/pytorch/run.sh", "cgroup": "student"}
SIZED = {"--repeat": 15, "--precision": ["fp32", "bf16", "fp16"], "--batch-size": "$BATCH_SIZE", "--cuda": ""}


def test_families_of_every_profile_are_measured_and_gone_on_with(
    part: Part, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    families, here = part("families"), given(part, tmp_path, kind="cpu")
    profiles = tmp_path / "profiles"
    profiles.mkdir()
    monkeypatch.setattr(families, "ROOT", tmp_path)
    monkeypatch.setattr(families, "preload", lambda: None)
    with pytest.raises(part("book").Skip, match="no profiles here"):
        families.run(here)
    (profiles / "lambda.json").write_text(
        json.dumps([FAMILY | {"args": SIZED}, FAMILY | {"name": "all", "cgroup": "all"}])
    )
    (profiles / "modern.json").write_text(json.dumps([FAMILY | {"name": "gpt", "args": {"--width": 8}}]))
    lines = ("[net]", "fp32 = { cpu = 2, 80gb = 640 }", "bf16 = { cpu = 3, 80gb = 1280 }", "args.cpu = { --size = 64 }")
    (profiles / "batch_sizes.toml").write_text("\n".join(lines))
    seen: list[tuple[str, ...]] = []

    def measured(main: str, words: tuple[str, ...], how: Any) -> dict[str, Any]:
        assert main.endswith("tasks/a/b/pytorch/main.py")
        seen.append(words)
        done = record(batch_size=2, device_memory={}, observations=[])
        done["observed"] |= {"dtype": "bf16"}
        return done

    monkeypatch.setattr(families, "measured", measured)
    here.families = ("net_bf16", "gpt")
    families.run(here)
    assert seen == [("--precision", "bf16", "--batch-size", "3", "--size", "64"), ("--width", "8")]
    here.families = ()
    families.run(here)
    assert seen[2:] == [("--precision", "fp32", "--batch-size", "2", "--size", "64")], "the others had passed"
    assert {name: word for name, (word, _) in checks(here).items()} == dict.fromkeys(
        ("net_bf16", "gpt", "net_fp32"), "PASS"
    )
    here.machine |= {"kind": "cuda", "memory_bytes": 80 * 2**30}
    assert list(families.known_cells(here)) == ["net_fp32", "net_bf16", "net_fp16", "gpt"]
    assert families.job_of(here, families.known_cells(here)["net_fp16"]).flags[-1] == "1280"
    here.machine |= {"memory_bytes": 2**30}
    with pytest.raises(part("book").Skip, match="none that fits"):
        families.job_of(here, families.known_cells(here)["net_fp16"])
    here.families = ("nett",)
    families.run(here)
    assert checks(here)["families"] == ("FAIL", "There is none of nett. There are net, gpt.")

    def late(work: Callable[[], Any], limit_s: float, log: Path) -> dict[str, Any]:
        raise part("task").LateError("It took longer.")

    monkeypatch.setattr(part("task"), "in_child", late)
    monkeypatch.setattr(families, "measured", part("task").measured)
    here.machine |= {"kind": "cpu"}
    cell = families.known_cells(here)["net_bf16"]
    with pytest.raises(part("book").Skip, match="No time was left for its end"):
        families.measure(here, "net_bf16", cell)
    here.seconds = 1e6
    families.measure(here, "net_bf16", cell)
    assert checks(here)["net_bf16"] == ("FAIL", "It took longer."), "it had all its time"


class FakeSource:
    """A device at 700 W whose counter moves every tenth of a second."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock

    def read(self) -> dict[str, Any]:
        now = self._clock()
        known = dict.fromkeys(("memory_load_percent", "memory_used_bytes", "clock_mhz", "memory_clock_mhz"), 5.0)
        known |= {"temperature_c": 60.0, "load_percent": 99.0, "power_w": 700.0, "energy_j": 700.0 * (now // 0.1) / 10}
        return {"GPU-1": SimpleNamespace(**known, slowed_by=(), processes=())}


def test_meters_on_an_invented_device(part: Part, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    meters, here = part("meters"), given(part, tmp_path)
    now = [100.0]
    source = FakeSource(lambda: now[0])
    clock = SimpleNamespace(monotonic=lambda: now[0], perf_counter=lambda: now[0])
    monkeypatch.setattr(meters, "time", clock)
    load = SimpleNamespace(until=lambda moment_s: now.__setitem__(0, moment_s + 0.003))
    for look in (meters.quantities, meters.look):
        look(here, source)
    meters.energy(here, source, load)
    assert {word for word, _ in checks(here).values()} == {"PASS"}
    source._clock = lambda: now[0] * 1.1  # A counter that runs a tenth too fast.
    meters.energy(here, source, load)
    assert checks(here)["energy against power"][0] == "FAIL"
    monkeypatch.setattr(FakeSource, "read", lambda self: {"GPU-1": SimpleNamespace(load_percent=10.0, processes=())})
    meters.quantities(here, source)
    assert checks(here)["quantities"][0] == "FAIL"
    assert "clock_mhz" in checks(here)["quantities"][1]
    assert checks(here)["load is seen"][0] == "FAIL"


def test_a_step_of_known_length_is_calibrated(part: Part, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On an invented device of 1.98 GHz, whose launches take 10 us."""
    probes, here = part("probes"), given(part, tmp_path)
    now_s, slept = [0.0], []

    class Event:
        def __init__(self, enable_timing: bool) -> None:
            assert enable_timing

        def record(self) -> None:
            self.at_s = now_s[0]

        def synchronize(self) -> None:
            pass

        def elapsed_time(self, end: Any) -> float:
            return (end.at_s - self.at_s) * 1e3

    def sleep(cycles: int) -> None:
        slept.append(cycles)
        now_s[0] += cycles / 1.98e9 + 1e-5

    torch = SimpleNamespace(cuda=SimpleNamespace(Event=Event, _sleep=sleep))
    monkeypatch.setattr(probes, "time", SimpleNamespace(monotonic=lambda: now_s[0], sleep=None))
    step, length_ms = probes.sleeper(here, torch)
    assert length_ms == pytest.approx(probes.STEP_MS, rel=0.01)
    step(None, None)
    assert slept[-1] == pytest.approx(1.98e9 * probes.STEP_MS / 1e3, rel=0.01)
    # The clocks were awake before anything was timed.
    assert sum(slept[:-8]) / 1.98e9 > 0.4


def test_where_a_step_waits_is_named(part: Part, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    modes: list[str] = []
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", modes.append)

    def step(run: Any, batch: Any) -> None:
        raise RuntimeError("called a synchronizing CUDA operation")  # as of loss.item()

    def other(run: Any, batch: Any) -> None:
        raise RuntimeError("mat1 and mat2 cannot be multiplied")

    work = SimpleNamespace(batches=iter([1, 2, 3]), step=step, run=None)
    found = part("silent").waits(work)
    assert found.startswith("test_gpu_parts.py:")
    assert "as of loss.item()" in found
    assert modes == ["error", "default"]
    work.step = lambda run, batch: None
    assert part("silent").waits(work) == ""
    work.step = other
    with pytest.raises(RuntimeError, match="mat1"):
        part("silent").waits(work)
    assert modes == ["error", "default"] * 3


def test_what_is_noted_of_a_task_between_ready_and_done(part: Part, monkeypatch: pytest.MonkeyPatch) -> None:
    from cotenant.bench.alone import Alone
    from cotenant.bench.world import World

    task = part("task")
    for name in ("ready", "await_go", "done"):
        monkeypatch.setattr(Alone, name, getattr(Alone, name))
    monkeypatch.setattr(task.Watch, "one", None)
    graphs = iter([3, 5])
    monkeypatch.setattr(task, "graphs", lambda: next(graphs))
    watch = task.Watch.over_tasks(3.0)
    alone = Alone("vae", World.from_environment())
    alone.ready(1_000_000, 12, 4, [9_000_000, 1_000_000, 2_000_000])
    assert alone.await_go()[1:] == (250, 12)
    alone.done()
    assert watch.compilations == [3, 5]
    # A task that keeps a budget itself is left alone, and another one begins anew.
    assert task.Watch.over_tasks(None) is watch
    assert watch.compilations == []
    assert alone.await_go()[1:] == (1_000_000, 12)


def test_a_task_is_measured_and_prepared(part: Part, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    task, job = part("task"), part("jobs").JOBS["toy_reg"]
    monkeypatch.setattr(sys, "argv", [])
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    flags = task.flags_of(job.main)
    assert {"--batch-size", "--precision", "--no-cuda"} <= flags
    assert "--b" not in flags
    work = task.prepared_here(job.task, ["--batch-size", "8"], cuda=False)
    loss = work.step(work.run, next(work.batches))
    assert loss.isfinite()
    turn = part("harness").bare(work, 2)
    assert turn() > 0


def test_launches_observe_no_longer_than_they_are_told(
    part: Part, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite, commands = part("suite"), list[list[str]]()

    class Runner:
        def __init__(self, command: list[str], cwd: Path, **more: Any) -> None:
            commands.append(command)
            output = cwd / "workspace" / "output"
            output.mkdir(parents=True)
            (output / "jobs.pinned.R0.D0.json").write_text('{"tenant": 0}')

        def wait(self, limit_s: float) -> int:
            return 0

        def poll(self) -> int:
            return 0

    monkeypatch.setattr(suite.subprocess, "Popen", Runner)
    assert suite.launched(tmp_path / "run", [], ["--users", "2"], 5) == [{"tenant": 0}]
    words = " ".join(commands[0])
    assert "--users 2" in words
    assert "--settle 0 --at-least 0" in words, "on a device ten seconds of observations are the default"
