"""`cotenant compare` as a person and a pipeline use it."""

from __future__ import annotations

import functools
import json
import shutil
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from commands.calling import Capture, call, vouched
from cotenant.results.identity import unique_id
from cotenant.results.record import Record
from cotenant.results.store import write_record
from results.made import ARGUMENTS, ISOLATION, NOON, a_lost_record, a_record, steady

FACTORS = (1.0, 1.004, 0.996, 1.002, 0.998)


def place(directory: Path, slower: float = 1.0, factors: tuple[float, ...] = FACTORS, **fields: Any) -> Path:
    """Write launches of two tenants each, `slower` times as slow, on a day that follows from the directory's name."""
    directory.mkdir(exist_ok=True)
    made = launches(NOON + timedelta(days=ord(directory.name[0])), slower, factors)
    return vouched(
        directory,
        [write_record(directory, replace(one, **fields), NOON + timedelta(seconds=one.run_id)) for one in made],
    )


@functools.cache
def launches(day: datetime, slower: float, factors: tuple[float, ...]) -> list[Record]:
    return [
        a_record(
            told={"observations": steady(mean_ms=500 * factor * slower)},
            place={"run_id": uid, "tenant": tenant, "vcd": str(tenant)},
            common={"started": day + timedelta(minutes=uid)},
        )
        for uid, factor in enumerate(factors)
        for tenant in (0, 1)
    ]


def run(capsys: Capture, *words: object) -> tuple[int, str, str]:
    return call(capsys, "compare", *words)


@pytest.fixture
def a(tmp_path: Path) -> Path:
    return place(tmp_path / "a")


def test_a_verdict_and_an_exit_status(a: Path, tmp_path: Path, capsys: Capture) -> None:
    for name, slower, verdict, status in (("b", 1.06, "SLOWER", 3), ("c", 0.94, "FASTER", 0), ("d", 1.001, "SAME", 0)):
        b = place(tmp_path / name, slower)
        found, said, errors = run(capsys, a, b, "--fail-on", "slower")
        assert (found, errors) == (status, "")
        assert f" {verdict} " in said.splitlines()[1] + " "
        assert "5, 5" in said
        assert ("slower by more than chance" in said) == (verdict == "SLOWER")
        assert run(capsys, a, b)[0] == 0
    status, said, _ = run(capsys, a, place(tmp_path / "few", 2.0, FACTORS[:2]), "--fail-on", "slower")
    assert (status, "UNCLEAR  5 launches a side would tell" in said) == (0, True)


def test_other_batch_sizes_are_compared_where_that_is_allowed(a: Path, tmp_path: Path, capsys: Capture) -> None:
    """Flags that leave the work of an item as it is may differ then, too; another argument is other work."""

    def tuned(name: str, **arguments: Any) -> Path:
        changed = ARGUMENTS | {"batch_size": 256, "compile": True} | arguments
        work = {"arguments": changed, "unique_id": unique_id("vae", "0123", changed)}
        return place(tmp_path / name, 0.9, **work)

    b = tuned("b")
    own = ARGUMENTS["batch_size"]
    assert f"different batch size: {own} and 256 (--allow batch_size)" in run(capsys, a, b)[1]
    said = run(capsys, a, b, "--allow", "batch_size")[1]
    assert " FASTER " in said
    assert f"batch size {own} -> 256" in said
    other = run(capsys, a, tuned("c", lr=0.5), "--allow", "batch_size")[1]
    assert "different work of an item" in other


def test_launches_of_a_tenant_alone_are_not_compared(a: Path, tmp_path: Path, capsys: Capture) -> None:
    b = place(tmp_path / "b")
    before = run(capsys, a, b)[1]
    for uid in range(5):
        alone = a_record(place={"solo": True, "tenants": 1, "run_id": uid}, told={"observations": steady(mean_ms=1)})
        write_record(b, alone, NOON)
    assert run(capsys, a, b)[:2] == (0, before)


def test_different_work_is_refused_until_it_is_allowed(a: Path, tmp_path: Path, capsys: Capture) -> None:
    changed = ARGUMENTS | {"lr": 0.5}
    other_lr = {"arguments": changed, "unique_id": unique_id("vae", "0123", changed)}
    for name, fields, words, allowed in (
        ("b", {"isolation": replace(ISOLATION, backend="none")}, "isolation: none and v1", "isolation"),
        ("c", other_lr, "source or arguments of the benchmark: lr unsaid and 0.5", "benchmark"),
        ("d", {"gpu": "Abacus 2"}, "device: Abacus 2 and Some Processor", "device"),
        ("e", {"cpu_cores": 2}, "processors: 1 and 2", "processors"),
    ):
        b = place(tmp_path / name, **fields)
        assert f"INVALID  different {words} (--allow {allowed})" in run(capsys, a, b)[1]
        assert "SAME" in run(capsys, a, b, "--allow", allowed)[1]


def test_one_side_is_of_one_work_whatever_is_allowed(a: Path, tmp_path: Path, capsys: Capture) -> None:
    b = place(tmp_path / "b")
    paths = sorted(b.glob("*.json"))
    for uid, path in enumerate(paths):
        fields = json.loads(path.read_text())
        fields["isolation"]["backend"] = "v1" if uid % 4 else "none"
        fields["tenants"], fields["tenant"], fields["run_id"] = 1, 0, uid
        fields["start_time"] = (NOON + timedelta(minutes=uid)).isoformat()
        path.write_text(json.dumps(fields))
    said = run(capsys, a, vouched(b, paths), "--allow", "isolation", "--allow", "tenants")[1]
    assert "INVALID  B has launches of different isolation: none and v1; name a directory of one" in said


def test_launches_of_two_hosts(a: Path, tmp_path: Path, capsys: Capture) -> None:
    b = place(tmp_path / "b", hostname="node2")
    said = run(capsys, a, b)[1]
    assert "SAME     A on node1, B on node2" in said
    place(b, 2.0)
    status, said, errors = run(capsys, a, b)
    assert (status, errors) == (0, "")
    assert "INVALID  B has launches of several hosts: node1 and node2 (--allow host)" in said
    assert "5, 10 " in run(capsys, a, b, "--allow", "host")[1], "neither host's launches are re-runs of the other's"


def test_a_copy_is_compared_like_the_directory_itself(a: Path, tmp_path: Path, capsys: Capture) -> None:
    b = tmp_path / "b"
    shutil.copytree(a, b)
    with_itself = run(capsys, a, a / ".." / "a")
    assert "SAME     A and B are the same launches" in with_itself[1]
    assert run(capsys, a, b) == with_itself
    place(tmp_path / "more", name="more")
    shutil.copytree(a, tmp_path / "more", dirs_exist_ok=True)
    copied = "INVALID  the same launches stand on both sides: repetition 0, 1, 2, 3, 4 of B"
    assert copied in run(capsys, a, tmp_path / "more")[1]
    for path in b.glob("*.R[0-3].*"):
        path.unlink()
    place(b, factors=FACTORS[:4])
    assert "INVALID  the same launches stand on both sides: repetition 4 of B" in run(capsys, a, b)[1]


def test_what_is_not_known_and_other_versions_are_told(a: Path, tmp_path: Path, capsys: Capture) -> None:
    assert "SAME     what B ran is not known" in run(capsys, a, place(tmp_path / "d", unique_id=""))[1]
    kernels = [{"software": {"kernel": kernel}} for kernel in ("6.1", "6.2")]
    b, c = (place(tmp_path / name, machine=machine) for name, machine in zip("bc", kernels, strict=True))
    assert run(capsys, a, b)[2] == ""
    assert run(capsys, b, c)[2] == "cotenant: Other versions from A to B: kernel 6.1 -> 6.2.\n"


def test_failed_or_foreign_launches_are_named_and_left_out(a: Path, tmp_path: Path, capsys: Capture) -> None:
    b = place(tmp_path / "b")
    lost = replace(a_lost_record("timeout", "Late."), run_id=9, name=a_record().name)
    write_record(b, lost, NOON)
    (b / "foreign.json").write_text("{}")
    status, said, errors = run(capsys, a, b)
    assert status == 0
    assert "SAME" in said
    assert "foreign.json: it has no `name`; skipped." in errors
    assert "repetition 9: user 0 timeout." in errors


def test_a_job_has_the_margin_of_its_own_noise(a: Path, tmp_path: Path, capsys: Capture) -> None:
    b, noisy = place(tmp_path / "b", 1.05), place(tmp_path / "noise", factors=(1.0, 1.05, 0.95, 1.02))
    place(noisy, name="wlm")
    for name in ("wlm", "ssd"):
        place(a, name=name)
        place(b, 1.05, name=name)
    status, said, _ = run(capsys, a, b, "--noise", noisy, "--fail-on", "slower")
    assert status == 3
    verdicts = {line.split()[0]: "SLOWER" in line for line in said.splitlines()[1:4]}
    assert verdicts == {"vae": False, "wlm": True, "ssd": False}
    assert "margins: ssd 8.4 %, vae 8.4 %, wlm 2.0 %;" in said


def test_noise_is_of_equal_launches(a: Path, tmp_path: Path, capsys: Capture) -> None:
    noisy = place(tmp_path / "noise", hostname="node2")
    place(noisy)
    status, said, errors = run(capsys, a, place(tmp_path / "b"), "--noise", noisy)
    assert (status, said) == (2, "")
    assert f"vae in {noisy} has launches of several hosts: node1 and node2 (--allow host)." in errors


def asked(directory: Path, *jobs: str) -> None:
    """Write the list of jobs that a suite leaves when it was asked to run these."""
    (directory / "baselines.R0.resolved").write_text(json.dumps([{"name": job, "label": job} for job in jobs]))


def test_a_job_that_fails_in_b_is_no_success(a: Path, tmp_path: Path, capsys: Capture) -> None:
    b = place(tmp_path / "b", name="wlm")
    place(a, name="wlm")
    for uid in range(5):
        write_record(b, replace(a_lost_record("failed", "Broken."), run_id=uid, name="vae"), NOON)
    status, said, errors = run(capsys, a, b, "--fail-on", "slower")
    assert status == 3
    assert "A has a rate of these jobs, and B, which ran them or was asked to, has none: vae.\n" in errors
    rows = json.loads(run(capsys, a, b, "--format", "json")[1])["rows"]
    assert [row["job"] for row in rows if row["lost"]] == ["vae"]
    assert "no launch with a rate in B" in said
    assert run(capsys, a, b)[0] == 0
    status, said, _ = run(capsys, b, a, "--fail-on", "slower")
    assert status == 0, "what A had no rate of is none that B has lost"
    assert "no launch with a rate in A" in said


def test_a_job_without_records_is_lost_where_b_was_asked_for_it(a: Path, tmp_path: Path, capsys: Capture) -> None:
    b = place(tmp_path / "b", name="wlm")
    place(a, name="wlm")
    asked(b, "wlm")
    (b / "cut.R1.resolved.json").write_text('[{"label": "va')
    status, _, errors = run(capsys, a, b, "--fail-on", "slower")
    assert status == 0
    assert "B has no record of these jobs of A, and nothing says that it was to run them: vae.\n" in errors
    asked(b, "wlm", "vae")
    status, _, errors = run(capsys, a, b, "--fail-on", "slower")
    assert status == 3
    assert "has none: vae.\n" in errors


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"name": "wlm"}, "No job was compared, so nothing shows that B is not slower.\n"),
        ({"isolation": replace(ISOLATION, backend="none")}, "cannot be compared, for the reason in the table: vae.\n"),
    ],
)
def test_what_was_not_compared_is_no_success(
    fields: dict[str, Any], said: str, a: Path, tmp_path: Path, capsys: Capture
) -> None:
    b = place(tmp_path / "b", **fields)
    status, _, errors = run(capsys, a, b, "--fail-on", "slower")
    assert (status, said in errors) == (3, True)
    assert run(capsys, a, b)[0] == 0
    both = [place(side, name="toy_reg") for side in (a, b)]
    assert run(capsys, *both, "--fail-on", "slower")[0] == (0 if "name" in fields else 3)
