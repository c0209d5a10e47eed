"""The line of a launch that has ended, and how long all may still take."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from cotenant.report.progress import PlainView, Planned, Progress, duration_words, rates_text, verdict_text
from report.making import BUSY, launch, lost, solo
from results.made import T0_NS

INVALID = {"load": (T0_NS, T0_NS + 10**10)}
CUT = [record for record in lost("x", 0) if record.outcome == "aborted"]


def test_verdicts_rates_and_durations() -> None:
    launches = launch("vae"), launch("vae", findings=(BUSY,)), launch("wlm", **INVALID), lost("x", 0), CUT
    assert [*map(verdict_text, launches)] == ["clean", "suspect", "INVALID", "out_of_memory", "aborted"]
    assert rates_text(launches[0]) == "7688 + 7604 image/s"
    assert [*map(rates_text, (*launches[2:], []))] == ["-"] * 4
    assert rates_text(launch("vae", 0, 8)) == "7178-7688 image/s"
    of_pairs = [*launch("vae", 0, 8), msgspec.structs.replace(launch("vae", 0)[0], unit="token")]
    assert rates_text(of_pairs) == "9 rates"
    assert rates_text(of_pairs[-2:]) == "7178 image/s + 7688 token/s"
    words = {0.4: "0 s", 16.2: "16 s", 599: "599 s", 600: "10 min", 7199: "120 min", 8640: "2.4 h"}
    assert {seconds: duration_words(seconds) for seconds in words} == words


def test_without_a_terminal_each_launch_has_one_plain_line() -> None:
    lines: list[str] = []
    view = PlainView([Planned("vae"), Planned("vae alone", alone=True), Planned("ssd")], lines.append)
    for position, records in enumerate((launch("vae"), solo("vae", tenants=1), lost("ssd", 0)), 1):
        view.launch(position, "", 2)
        view.building(1)
        view.measuring(3.0)
        view.stopping()
        view.tick()
        view.ended(records)
    assert lines == [
        "1/3 vae        clean      0 s  7688 + 7604 image/s",
        "2/3 vae alone  clean      0 s  8542 image/s",
        "3/3 ssd        out_of_memory    0 s  -",
    ]


def test_a_narrow_terminal_shortens_the_name_and_no_number() -> None:
    progress = Progress([Planned("convnet_distributed_fp16")])
    progress.begin(1, "convnet_distributed_fp16")
    for width, name in ((60, "convnet_distr…"), (20, "convnet…"), (200, "convnet_distributed_fp16")):
        assert "".join(progress.end(launch("x"), width)) == f"1/1 {name}  clean      0 s  7688 + 7604 image/s"


NEVER, BEFORE = (None,) * 4, (10, 4, 10, 4)
LAST, PACE = "by the last run here", "at this pace"


@pytest.mark.parametrize(
    ("known", "took", "remaining"),
    [
        (NEVER, (), None),
        # A launch alone is expected to take as long as a launch together until one has ended.
        (NEVER, (10,), (30, PACE)),
        (NEVER, (10, 4), (14, PACE)),
        (BEFORE, (), (28, LAST)),
        (BEFORE, (50,), (18, LAST)),
        # A job that the last run did not have is expected to take as long as others of its kind.
        ((10, 4, None, 4), (), (28, LAST)),
        ((10, 4, None, 4), (30,), (38, LAST)),
    ],
)
def test_remaining_time_comes_from_the_last_run_or_this_pace(known: Any, took: Any, remaining: Any) -> None:
    now_s = 0.0
    progress = Progress([Planned("x", place % 2 == 1, each) for place, each in enumerate(known)], lambda: now_s)
    for position, seconds in enumerate(took, 1):
        progress.begin(position, "x")
        now_s += seconds
        progress.end(launch("x"))
    assert (progress.remaining_s(), progress.done) == (remaining, len(took))


def test_what_is_estimated_says_so() -> None:
    planned = [Planned("a", seconds=5.0), Planned("b", seconds=7.0, estimated=True)]
    assert Progress(planned).remaining_s() == (12.0, "by a calibration of half a second")
    # A job of unknown time is expected to take as long as the others.
    planned = [Planned("a", seconds=5.0), Planned("b", estimated=True)]
    assert Progress(planned).remaining_s() == (10.0, LAST)


def test_a_suite_that_goes_on_has_the_first_launches_behind_it() -> None:
    progress = Progress([Planned("a"), Planned("b", seconds=5.0), Planned("c", seconds=7.0)])
    progress.begin(2, "b")
    assert (progress.done, progress.place, progress.name) == (1, "2/3", "b")
    assert progress.remaining_s() == (12.0, LAST)
