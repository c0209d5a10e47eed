"""`report --table share`: the throughput of K users of one device by job and mode, from records of known rates."""

from __future__ import annotations

import re
from pathlib import Path
from statistics import geometric_mean

import pytest

from commands.calling import Capture, call, write
from cotenant.report.numbers import ONCE
from cotenant.report.page import page
from cotenant.report.sections.contents import PageContents
from cotenant.report.sections.neighbours import sharing
from cotenant.report.share import share_points, share_view
from cotenant.report.summary import summarise
from cotenant.results.read import read_records
from cotenant.results.record import Record, SharedDevice
from cotenant.results.table import Rows
from report.making import SEEN, launch, rows_of, solo, text_of
from results.made import a_part

COSTS = {"time": 1.10, "mps:50": 0.70}
"""The time that K users of a mode take, over the time that they would take in turns."""
ALONE_MS = 100.0
POINTS = [("mps:50", 2), ("mps:50", 4), ("time", 1), ("time", 4)]
LONE = SharedDevice("", "exclusive", 1, None, None, "", None)


def shared(mode: str, users: int, uid: int = 0) -> list[Record]:
    """K users of one device whose steps take K times as long as alone, times the mode's cost; and each user alone."""
    entitlement = 0.5 if mode.startswith("mps") else 1 / users
    share = SharedDevice(mode, mode, users, entitlement, None, "", None)
    kept_ms = ALONE_MS * users * COSTS[mode] if users > 1 else ALONE_MS
    together = launch("vae", uid, users, kept_ms, place={"share": share})
    return together + solo("vae", uid, users, ALONE_MS, place={"share": LONE})


def rows_in(folder: Path) -> Rows:
    return Rows.all(read_records([folder]).table)


@pytest.mark.usefixtures("unpictured")
def test_a_line_a_mode_of_known_throughput(tmp_path: Path, capsys: Capture) -> None:
    """Every K is a run in a directory of its own, with the same repetition numbers."""
    for mode, users in POINTS:
        write(tmp_path / f"{mode}-{users}", [one for uid in range(3) for one in shared(mode, users, uid)])
    points = share_points(rows_in(tmp_path))
    grid = share_view(points)
    assert [group.title for group in grid.shown] == ["vae"]
    rows = rows_of(grid)
    assert [(row["mode"], int(row["sharers"])) for row in rows] == POINTS
    for row in rows:
        users = int(row["sharers"])
        cost = COSTS[row["mode"]] if users > 1 else 1
        measures = [float(row[name]) for name in ("stp", "antt", "worst_slowdown", "tax", "fairness")]
        assert measures == pytest.approx([1 / cost, users * cost, users * cost, 1 - 1 / cost, 1], rel=0.01, abs=0.001)
        assert (row["stp_n"], row["baseline"], row["verdict"]) == ("3", "whole", "clean")
        assert float(row["stp_low"]) <= 1 / cost * 1.001 <= float(row["stp_high"]) * 1.01
    assert [float(row["entitlement"]) for row in rows] == [0.5, 0.5, 1, 0.25]
    status, printed, _ = call(capsys, "report", tmp_path, "--table", "share")
    assert (status, "worst slowdown" in printed, ONCE in printed) == (0, True, False)
    contents = PageContents(summarise(rows_in(tmp_path)), shared=points)
    (job,) = sharing(contents).details
    assert [picture.title for picture in job.pictures] == ["STP", "ANTT", "worst slowdown"]
    assert job.sentences[0].startswith("● mps:50, ■ time; dotted: users that take turns")
    assert all(f">{users}</text>" in job.pictures[0].svg.replace("\n", "") for users in (1, 2, 4))
    assert 'id="share"' in page("K", contents)


def served(users: int, uid: int, watts: float, p99_ms: float, solo: bool = False) -> list[Record]:
    """K users that serve on one device, whose energy counter was read over twenty seconds."""
    share = LONE if solo else SharedDevice("time", "time", users, 1 / users, None, "", None)
    meters = {
        "devices": {"GPU-3": SEEN | {"index": 3, "energy_j": 20 * watts, "energy_window_s": 20.0}},
        "steps": {"n": 900, "p50_ns": 2e6, "p95_ns": 3e6, "p99_ns": p99_ms * 1e6, "p99_interval_ns": None},
    }
    place = {"share": share, "vcd": "3"} | ({"solo": True, "tenants": 1} if solo else {})
    part = a_part(item="token", observed={"dtype": "fp32", "device": "cuda:0"})
    return launch("decode", uid, users, 100.0 if solo else 100.0 * users, place=place, part=part, meters=meters)


def test_sharing_has_a_price_in_joules_and_in_the_slowest_steps(tmp_path: Path) -> None:
    """Two users in turns have half of the rate each; the device takes 300 W for both, and 200 W for one alone."""
    records = [served(2, uid, 300, 40) + served(2, uid, 200, 4, solo=True) for uid in range(3)]
    write(tmp_path / "of-2", [one for of_uid in records for one in of_uid])
    (point,) = share_points(rows_in(tmp_path))
    assert (point["energy"], point["energy_n"]) == (pytest.approx(1.5), 3)
    rates = [sum(one.statistics.median for one in of_uid[:2]) for of_uid in records]
    assert point["joules_per_item"] == pytest.approx(geometric_mean(300 / rate for rate in rates))
    (row,) = rows_of(share_view([point]))
    numbers = [float(row[name]) for name in ("energy", "step_p99_ns", "alone_step_p99_ns")]
    assert numbers == [pytest.approx(1.5), 40e6, 4e6]
    text = text_of(share_view([point]), width=300)
    assert all(words in text for words in ("2, 3, 40 ms", "2, 3, 4 ms", "joules of the devices"))


def test_processor_slices_are_a_share_mode(tmp_path: Path, capsys: Capture) -> None:
    write(tmp_path / "2", [*launch("vae", 0, 4, 400.0, place={"sharers": 2}), *solo("vae", 0, 4, 180.0)])
    write(tmp_path / "4", launch("vae", 0, 4, 900.0, place={"sharers": 4}))
    grid = share_view(share_points(rows_in(tmp_path)))
    text = text_of(grid, width=220)
    assert ONCE in text
    assert "slices, K = 4: vae was not measured alone: --baseline blocks, or whole" in text
    first, second = rows_of(grid)
    assert float(first["stp"]) == pytest.approx(4 * 0.45, rel=0.01)
    assert float(first["tax"]) == pytest.approx(1 - 4 * 0.45 / 2, abs=0.01)
    assert (first["mode"], first["entitlement"], second["stp"]) == ("slices", "0.5", "")
    assert (first["baseline"], second["baseline"]) == ("whole", "")
    status, _, errors = call(capsys, "report", write(tmp_path / "none", launch("vae")), "--table", "share")
    assert status == 2
    assert "No users there shared a device or a slice." in errors
    none, two = (
        sharing(PageContents(summarise(rows), shared=share_points(rows)))
        for rows in (rows_in(tmp_path / "none"), rows_in(tmp_path / "2"))
    )
    assert none is None
    assert two.details == [], "one number of users is no line"


def test_an_instance_is_a_whole_device(tmp_path: Path) -> None:
    """Each of two users keeps all of its instance's rate alone: that is not seven times its entitlement."""
    of_instance = {"share": SharedDevice("mig", "mig", 1, 1 / 7, None, "", None)}
    apart = [*launch("vae", 0, 2, ALONE_MS, place=of_instance), *solo("vae", 0, 2, ALONE_MS, place=of_instance)]
    write(tmp_path / "mig", apart)
    (instances,) = rows_of(share_view(share_points(rows_in(tmp_path))))
    assert (instances["mode"], float(instances["stp"])) == ("mig", pytest.approx(2, rel=0.01))


def test_other_modes_or_user_counts_compare_only_if_allowed(tmp_path: Path, capsys: Capture) -> None:
    runs = {}
    for mode, users in [("time", 2), ("mps:50", 2), ("time", 4)]:
        records = [one for uid in range(3) for one in shared(mode, users, uid) if not one.solo]
        runs[mode, users] = write(tmp_path / f"{mode}{users}", records)
    for other, words in {("mps:50", 2): ["share"], ("time", 4): ["tenants", "device_sharers"]}.items():
        allowed: list[str] = []
        for word in words:
            _, printed, _ = call(capsys, "compare", runs["time", 2], runs[other], *allowed)
            assert re.search(rf"vae .* INVALID +different {word.replace('_', ' ')}", printed), printed
            allowed += ["--allow", word]
        _, printed, _ = call(capsys, "compare", runs["time", 2], runs[other], *allowed)
        assert "different" not in printed
