"""The facts of a record that are made of all tenants of a launch."""

from __future__ import annotations

from typing import Any, cast

from cotenant.launch.inbox import ReadyMessage
from cotenant.launch.rank import Go, Rank
from cotenant.launch.records import _meeting
from cotenant.launch.told import Told
from cotenant.results.build import load_of
from cotenant.results.told import TenantPart
from cotenant.stats.budget import Amount
from results.made import T0_NS, steady


def test_a_meeting_is_with_those_that_ran_meanwhile() -> None:
    rows, link = steady(), cast(Any, None)
    end_ns = rows[-1].end_ns
    first = Rank(link, 0, 1, ready=ReadyMessage(30, 25, 5, [3, 2, 1]), ready_ns=T0_NS - 50)
    part = TenantPart(load_end_ns=end_ns + 7)
    told = Told(Go(T0_NS, Amount(30, 25, 5)), first, part, rows, {}, 9, load_of(rows, part, 0))
    meeting = _meeting(told, together=(T0_NS, rows[15].start_ns), first_start_ns=T0_NS - 40)
    assert meeting is not None
    assert (meeting.t0_ns, meeting.start_ns, meeting.start_skew_ns, meeting.late_ns) == (T0_NS, T0_NS, 40, 9)
    assert (meeting.ready_ns, meeting.load_end_ns, meeting.warm_up_ns) == (T0_NS - 50, end_ns + 7, [3, 2, 1])
    assert meeting.overlap == sum(made.took_ns for made in rows[5:15]) / sum(made.took_ns for made in rows[5:])


def test_no_load_goes_on_behind_stop() -> None:
    rows = steady()
    stop_ns = rows[-1].end_ns + 5
    for said_ns, end_ns in ((stop_ns + 10**12, stop_ns), (stop_ns - 1, stop_ns - 1), (0, rows[-1].end_ns)):
        assert load_of(rows, TenantPart(load_end_ns=said_ns), stop_ns) == (T0_NS, end_ns)
    # A benchmark alone has no runner that could say STOP.
    assert load_of(rows, TenantPart(load_end_ns=stop_ns + 7), 0) == (T0_NS, stop_ns + 7)
