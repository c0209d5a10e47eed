"""The amounts that tenants measure: equal for tenants of one cell; in a mix each tenant goes on until all can end."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from cotenant.launch.alone import observations_alone
from cotenant.launch.design.shared import Design, DesignPlan, Room
from cotenant.launch.limits import USUAL_LIMITS, Limits
from cotenant.launch.tenant import Tenant, ranks_of
from cotenant.stats.budget import MOST_REPEAT, Amount, lasting, range_ns, steady_ns

SLACK = 4.0
"""A tenant of a mix may observe for this many times the expected load: its warm-up was timed while neighbours came
and went, so that the end cannot be computed and is awaited."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """The amount that a tenant measures: `least` as in a launch of equal tenants, `most` in its GO.

    `alone` of the most observations are for its turn alone, after the others.
    """

    least: Amount
    most: Amount
    alone: int = 0

    @property
    def grown(self) -> bool:
        """True if it may go on beyond its least amount until its neighbours have measured theirs."""
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
    of_batch_ns = {
        cell: range_ns(rank.ready.warm_up_ns for rank in members if rank.ready) for cell, members in ranks.items()
    }
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
    """Return the amounts, with more observations for the tenants that go on alone, so that none runs out of them.

    A tenant of several ranks cannot be told to end early, and gets the observations of a turn alone, and a tenth more
    for the time until the others have made theirs.
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
    tenants: Sequence[Tenant], design: Design, limits: Limits, left_s: float
) -> tuple[DesignPlan, dict[int, Allowance]] | str:
    """Return the plan of a design and the amount of each tenant; or the reason why there can be no plan.

    The load ends with the blocks, not after a count: observations are so short that several fit into a block, and
    amounts are larger than the plan has time for. `left_s` are the seconds until the launch's time limit. Raises
    ProtocolError if the tenants of a cell disagree.
    """
    if not design.takes_turns:
        return design.refusal
    room = _room(tenants, limits, left_s)
    planned = room if isinstance(room, str) else design.plan(room)
    if isinstance(room, str) or isinstance(planned, str):
        return str(planned)
    given: dict[int, Allowance] = {}
    for cell in dict.fromkeys(tenant.spec.cell for tenant in tenants):
        of_cell = [tenant.index for tenant in tenants if tenant.spec.cell == cell]
        requested = USUAL_LIMITS.given([tenant.ranks[0] for tenant in tenants if tenant.spec.cell == cell])
        number = planned.tempo.number(of_cell, requested.number)
        expected = max(1, planned.awake_ns // (number * min(room.steps_ns[index] for index in of_cell)))
        amount = Amount(number, round(SLACK * expected), 0)
        given |= dict.fromkeys(of_cell, Allowance(amount, amount))
    return planned, given


def _room(tenants: Sequence[Tenant], limits: Limits, left_s: float) -> Room | str:
    """Return the conditions of the launch; or why its tenants cannot take turns."""
    if any(tenant.live.held_by is None for tenant in tenants):
        return "nothing here can hold a user still: the kernel's freezer is missing"
    if any(tenant.several for tenant in tenants):
        return "a user has several processes, which wait for each other"
    steps_ns = {
        tenant.index: step_ns
        for tenant in tenants
        if (ready := tenant.ranks[0].ready) is not None and (step_ns := steady_ns(ready.warm_up_ns)) is not None
    }
    if len(steps_ns) < len(tenants):
        return "a user has timed none of its steps"
    on_devices = Counter(device for tenant in tenants for device in tenant.spec.slice.accelerators)
    return Room(
        steps_ns,
        max(on_devices.values(), default=0),
        None if limits.budget_s is None else round(limits.budget_s * 1e9),
        round((left_s - limits.settle_s) * 1e9),
        limits.until_interval,
    )
