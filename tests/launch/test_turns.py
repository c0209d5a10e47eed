"""Turns on a shared device and on shared processors, of invented tenants, whose messages are lists, and real ones."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from cotenant.launch.rank import RankPhase
from cotenant.launch.turns import TURN_S, Turns
from tenants.once import once
from tenants.suites import Suites, job


class Sharer:
    """A tenant on these devices and processors that has joined; `sent` has the runner's messages to it."""

    def __init__(self, index: int, *devices: str, processors: tuple[int, ...] = ()) -> None:
        accelerators = [SimpleNamespace(uuid=uuid, pci="") for uuid in devices]
        self.index, self.lost, self.ready, self.sent = index, False, False, list[str]()
        self.spec = SimpleNamespace(slice=SimpleNamespace(accelerators=accelerators, processors=processors))
        self.ranks = {0: SimpleNamespace(link=SimpleNamespace(send=self.sent.append))}

    def all_ranks(self, phase: RankPhase) -> bool:
        assert phase is RankPhase.READY
        return self.ready


def turns_of(*tenants: Sharer) -> tuple[Any, list[float]]:
    now = [0.0]
    return Turns(tenants, lambda: now[0]), now  # type: ignore[arg-type]


def told(*tenants: Sharer) -> list[list[str]]:
    return [tenant.sent for tenant in tenants]


def turner(folder: Path, name: str, joined: str) -> dict[str, Any]:
    """A job whose program does this when it has joined."""
    program = folder / f"{name}.py"
    program.write_text(once(joined=joined))
    program.chmod(0o755)
    return job(name=name) | {"cmd": str(program), "args": {}}


def test_tenants_take_turns_once_all_have_asked() -> None:
    tenants = first, second, third = Sharer(0, "GPU-a"), Sharer(1, "GPU-a"), Sharer(2, "GPU-a")
    turns, _ = turns_of(*tenants)
    turns.request(second)
    turns.request(first)
    assert told(*tenants) == [[], [], []]
    turns.request(third)
    assert told(*tenants) == [["turn"], [], []]
    turns.look()
    turns.over(first)
    assert told(*tenants) == [["turn"], ["turn"], []]
    turns.over(second)
    assert told(*tenants) == [["turn"], ["turn"], ["turn"]]
    turns.over(third)
    turns.look()
    assert told(*tenants) == [["turn", "turned"]] * 3


def test_other_devices_and_those_without_one_do_not_wait() -> None:
    tenants = Sharer(0, "GPU-a"), Sharer(1, "GPU-b"), Sharer(2), Sharer(3)
    turns, _ = turns_of(*tenants)
    for tenant in (tenants[1], tenants[3]):
        turns.request(tenant)
        turns.over(tenant)
    assert told(*tenants) == [[], ["turn", "turned"], [], ["turn", "turned"]]


def test_only_tenants_that_share_processors_wait_for_turns() -> None:
    places = (0, 1), (2, 3), (1, 2), (4, 5)
    tenants = [Sharer(index, processors=place) for index, place in enumerate(places)]
    turns, _ = turns_of(*tenants)
    for tenant in (tenants[3], *tenants[:3]):
        turns.request(tenant)
    assert told(*tenants) == [["turn"], [], [], ["turn"]]
    for tenant in (tenants[3], *tenants[:3]):
        turns.over(tenant)
    assert told(*tenants) == [["turn", "turned"]] * 4


def own_turn(folder: Path) -> str:
    return f"""
if runner.warms_up_alone:
    runner.turn()
    begin_ns = time.perf_counter_ns()
    time.sleep(0.2)
    Path({str(folder)!r}, tenant).write_text(str(begin_ns) + ' ' + str(time.perf_counter_ns()))
    runner.turned()
"""


def test_the_sides_of_a_duet_warm_up_one_after_the_other(loose: Suites, tmp_path: Path) -> None:
    words = ("--duet", "job", "--users", 1, "--", "---")
    loose.run([turner(tmp_path, "job", own_turn(tmp_path))], *words, status=1)
    first, second = sorted(tuple(map(int, (tmp_path / side).read_text().split())) for side in "01")
    assert first[1] <= second[0]


def test_users_who_share_no_device_have_turns_at_once(loose: Suites, tmp_path: Path) -> None:
    """Users who all run at once warm up at once, too."""
    at_once = turner(tmp_path, "turns", "runner.turn()\nrunner.turned()")
    loose.run([at_once, turner(tmp_path, "warms", own_turn(tmp_path))], "--users", 2, status=0)
    assert loose.outcomes() == ["completed"] * 4
    assert not [*tmp_path.glob("[01]")]


def test_a_lost_or_slow_tenant_loses_its_turn() -> None:
    tenants = dead, slow, last, ready = [Sharer(index, "GPU-a") for index in range(4)]
    turns, now = turns_of(*tenants)
    ready.ready = True
    for tenant in (dead, slow, last):
        turns.request(tenant)
    dead.lost = True
    turns.look()
    assert told(*tenants) == [["turn"], ["turn"], [], []]
    now[0] = TURN_S - 1
    turns.look()
    assert last.sent == []
    now[0] = TURN_S
    turns.look()
    assert told(slow, last) == [["turn"], ["turn"]]
    turns.over(last)
    assert told(slow, last) == [["turn"], ["turn", "turned"]]
    turns.over(slow)
    assert slow.sent == ["turn", "turned"]
