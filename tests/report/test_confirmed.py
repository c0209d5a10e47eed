"""What new launches make of a flag."""

from __future__ import annotations

from cotenant.report.comparison import Conditions, SuiteComparison, compare_launches, confirmed, flagged
from cotenant.results.launches import LaunchRecords
from cotenant.stats.comparison import Verdict

WORK = (("benchmark", "abc"), ("batch_size", 128), ("tenants", 2))
NEAR = (1.0, 1.004, 0.996, 1.002, 0.998)


def launches(times: float, count: int = 5) -> list[LaunchRecords]:
    rates = [100 * times * factor for factor in NEAR[:count]]
    return [
        LaunchRecords("suite", "", "vae", "student", "", "v1", uid, False, "", rate, WORK, ["0", "1"], [rate / 2] * 2)
        for uid, rate in enumerate(rates)
    ]


def lines(times: float, **others: float) -> SuiteComparison:
    sides = {"vae": times, **others}
    a = {job: launches(1.0) for job in sides}
    return compare_launches(a, {job: launches(one) for job, one in sides.items()}, Conditions())


def test_flags_are_claims() -> None:
    assert flagged(lines(0.9, wlm=1.1, ssd=1.0, reso=1.02)) == ["vae", "wlm"]


def test_new_launches_alone_judge() -> None:
    for before, after, verdict, note in (
        (0.9, 0.92, Verdict.SLOWER, "CONFIRMED by new launches (before SLOWER, 0.9000)"),
        (1.1, 1.2, Verdict.FASTER, "CONFIRMED by new launches (before FASTER, 1.1000)"),
        (0.9, 1.0, Verdict.SAME, "NOT CONFIRMED by new launches (before SLOWER, 0.9000)"),
        (0.9, 1.1, Verdict.UNCLEAR, "NOT CONFIRMED by new launches (before SLOWER, 0.9000)"),
        (1.1, 0.9, Verdict.UNCLEAR, "NOT CONFIRMED by new launches (before FASTER, 1.1000)"),
    ):
        first, again = lines(before, ssd=1.0), lines(after)
        found = confirmed(first, again)
        assert (found.lines[0].verdict, found.lines[0].note) == (verdict, note)
        assert found.lines[0].comparison == again.lines[0].comparison
        assert found.lines[1] == first.lines[1]
        assert first.suite_slower == (before < 1)
        assert found.suite_slower == (after < 0.95)


def test_too_few_new_launches_confirm_nothing() -> None:
    for again, verdict, reason in (
        ([], Verdict.INVALID, "no launch with a rate in B"),
        (launches(0.9, 3), Verdict.UNCLEAR, "5 launches a side would tell"),
    ):
        (line,) = confirmed(lines(0.9), compare_launches({"vae": launches(1.0)}, {"vae": again}, Conditions())).lines
        assert line.verdict is verdict
        assert line.note == f"NOT CONFIRMED by new launches (before SLOWER, 0.9000); {reason}"
