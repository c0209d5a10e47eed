"""The amounts that tenants measure: equal ones in tenants of one cell; in a mix each goes on until all can end."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from cotenant.launch.alone import observations_alone
from cotenant.launch.crowd import Crowd, CrowdSchedule
from cotenant.launch.duet import DUET_BUDGET_NS, LEAST_DUET_ROUNDS, MOST_DUET_NS, DuetSchedule
from cotenant.launch.limits import USUAL_LIMITS, Limits
from cotenant.launch.pairing import Pair, PairSchedule
from cotenant.launch.schedule import BUDGET_NS, LEAST_ROUNDS, Schedule, within
from cotenant.launch.tenant import Tenant, ranks_of
from cotenant.stats.budget import MOST_REPEAT, Amount, lasting, range_ns, steady_ns

SLACK = 4.0
"""A tenant of a mix may observe for so many times the expected load: its warm-up was timed while neighbours came and
went, so that the end cannot be computed and is awaited."""

TOO_LONG = 5
"""A side of a duet may have warmed up while others kept its processors busy: steps that leave no time for the fewest
rounds are taken for so many times shorter."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """The amount that a tenant measures: at `least` that of a launch of equal tenants, at `most` the one in its GO.

    So many of the most observations are for its turn `alone`, behind the others.
    """

    least: Amount
    most: Amount
    alone: int = 0

    @property
    def grown(self) -> bool:
        """Whether it may go on beyond its least amount until its neighbours have measured theirs."""
        return self.most != self.least


def allowances(tenants: Sequence[Tenant], limits: Limits) -> dict[int, Allowance]:
    """Return the amount that each tenant measures, by its number.

    Each cell's amount is that of a launch of equal tenants under the same limits. In a mix the cell whose amount takes
    longest decides when the load ends; the others get further observations. A tenant of several ranks cannot be told
    to end early, and gets only as many as fill the expected load. Raises ProtocolError if tenants of a cell disagree.
    """
    cells = defaultdict(list)
    for tenant in tenants:
        cells[tenant.spec.cell].append(tenant)
    ranks = {cell: ranks_of(of_cell) for cell, of_cell in cells.items()}
    least = {cell: limits.given(of_cell) for cell, of_cell in ranks.items()}
    if len(cells) == 1:
        return {tenant.index: Allowance(least[tenant.spec.cell], least[tenant.spec.cell]) for tenant in tenants}
    of_batch_ns = {cell: range_ns(rank.ready.warm_up_ns for rank in of if rank.ready) for cell, of in ranks.items()}
    load_ns = max(least[cell].batches * (slowest_ns or 0) for cell, (_, slowest_ns) in of_batch_ns.items())
    allowances: dict[int, Allowance] = {}
    for cell, of_cell in cells.items():
        amount, (batch_ns, _) = least[cell], of_batch_ns[cell]
        kept_ns = round(SLACK * load_ns)
        if any(tenant.several for tenant in of_cell):
            kept_ns = max(0, load_ns - amount.skip * amount.number * (batch_ns or 0))
        allowance = Allowance(amount, lasting(amount, batch_ns, kept_ns))
        allowances |= dict.fromkeys((tenant.index for tenant in of_cell), allowance)
    return allowances


def going_on(given: Mapping[int, Allowance], goers: Sequence[Tenant]) -> dict[int, Allowance]:
    """Return the amounts, with more observations of the tenants that go on alone: so many that none runs out of them.

    One of several ranks cannot be told to end early, and gets those of a turn alone, and a tenth for the time until the
    others have made theirs.
    """
    more = dict(given)
    for tenant in goers:
        least, most = given[tenant.index].least, given[tenant.index].most
        batch_ns, _ = range_ns(rank.ready.warm_up_ns for rank in tenant.ranks.values() if rank.ready)
        of_turn = observations_alone(most.number * batch_ns) if batch_ns else MOST_REPEAT
        alone = math.ceil(most.repeat / 10 + of_turn + 1 if tenant.several else SLACK * (most.repeat + of_turn))
        more[tenant.index] = Allowance(least, replace(most, repeat=most.repeat + alone), alone)
    return more


def by_blocks(
    tenants: Sequence[Tenant], budget_s: float | None, pairs: tuple[Pair, ...] = (), crowd: Crowd | None = None
) -> tuple[Schedule, dict[int, Allowance]] | str:
    """Return a schedule in which all tenants, `pairs` or a `crowd` take turns, and the amount of each; or the reason
    why they cannot.

    The schedule ends the load, not a count: observations are so short that several fit into a block, and amounts are
    larger than the schedule has time for. Raises ProtocolError if the tenants of a cell disagree.
    """
    if any(tenant.live.held_by is None for tenant in tenants):
        return "nothing here can hold a user still: the kernel's freezer is missing"
    if any(tenant.several for tenant in tenants):
        return "a user is of several processes, which wait for each other"
    ranks = {tenant.index: tenant.ranks[0] for tenant in tenants}
    steps_ns = {
        index: step_ns
        for index, rank in ranks.items()
        if rank.ready is not None and (step_ns := steady_ns(rank.ready.warm_up_ns)) is not None
    }
    if len(steps_ns) < len(tenants):
        return "a user has timed none of its steps"
    schedule = _schedule(tenants, steps_ns, budget_s, pairs, crowd)
    if schedule is None:
        rounds = LEAST_DUET_ROUNDS if tenants[0].spec.duet is not None else LEAST_ROUNDS
        longest_s = max(steps_ns.values()) / 1e9
        return f"{rounds} rounds of steps of {longest_s:.2g} s take more than twice the budget"
    given: dict[int, Allowance] = {}
    for cell in dict.fromkeys(tenant.spec.cell for tenant in tenants):
        of_cell = [tenant.index for tenant in tenants if tenant.spec.cell == cell]
        requested = USUAL_LIMITS.given([ranks[index] for index in of_cell])
        number = schedule.number(of_cell, requested.number)
        expected = max(1, schedule.awake_ns // (number * min(steps_ns[index] for index in of_cell)))
        slack = SLACK * len(tenants) if schedule.is_parted else SLACK
        if isinstance(schedule, DuetSchedule):
            slack *= TOO_LONG
        least, most = (Amount(number, repeat, 0) for repeat in (expected, round(slack * expected)))
        given |= dict.fromkeys(of_cell, Allowance(least, most))
    return schedule, given


def _schedule(
    tenants: Sequence[Tenant],
    steps_ns: Mapping[int, int],
    budget_s: float | None,
    pairs: tuple[Pair, ...],
    crowd: Crowd | None,
) -> Schedule | None:
    """Return a schedule of as many rounds as the budget has time for; None if the fewest take over twice as long."""
    on_devices = Counter(device for tenant in tenants for device in tenant.spec.slice.accelerators)
    shape = (steps_ns, max(on_devices.values(), default=0))
    duets = {tenant.index: tenant.spec.duet.turn for tenant in tenants if tenant.spec.duet is not None}
    usual_ns = DUET_BUDGET_NS if duets else (2 * len(pairs) or len(tenants)) * BUDGET_NS
    budget_ns = usual_ns if budget_s is None else round(budget_s * 1e9)
    if duets:
        first, second = (frozenset(index for index, turn in duets.items() if turn == of) for of in (0, 1))
        duet = DuetSchedule(*shape, LEAST_DUET_ROUNDS, (first, second))
        shorter = replace(duet, steps_ns={tenant: step_ns // TOO_LONG for tenant, step_ns in steps_ns.items()})
        budgets_ns = (budget_ns,) if budget_s is not None else (budget_ns, MOST_DUET_NS)
        tried = (within(of, within_ns) for of in (duet, shorter) for within_ns in budgets_ns)
        return next(filter(None, tried), None)
    if crowd is not None:
        users = crowd.searcher.next_users() or len(tenants)
        return CrowdSchedule(*shape, 1, (users,), crowd.slices, budget_ns)
    if pairs:
        # Their rounds are counted once steps are timed again: before GO those of the other slice ran beside them.
        return PairSchedule(*shape, LEAST_ROUNDS, pairs, budget_ns)
    return within(Schedule(*shape, LEAST_ROUNDS), budget_ns)
