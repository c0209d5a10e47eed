"""Turns of the tenants on one device or the same processors: one works while the others are idle.

On a device each tenant tries its algorithms, as it would alone. Tenants that will not all run at once also warm up
by turns: threads that wait for each other are a hundred times slower if several tenants share the processors.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Literal

from cotenant.launch.rank import RankPhase
from cotenant.launch.tenant import Tenant

TURN_S = 60.0
"""Seconds after which a turn ends, even if the tenant has not ended it, and the next tenant's begins."""


@dataclass(slots=True)
class _Turn:
    """The state of a turn: its tenant `waits`, or `has` it since `since_s`; it is `over`; its tenant is `released`."""

    state: Literal["waits", "has", "over", "released"] = "waits"
    since_s: float = 0.0


@dataclass(slots=True)
class Turns:
    """Gives turns to tenants that ask, in order, once all tenants in their place have asked or are ready.

    A tenant goes on after its own turn when all tenants in its place have had theirs.
    """

    tenants: Sequence[Tenant]
    now_s: Callable[[], float] = time.monotonic
    _turns: dict[int, _Turn] = field(default_factory=dict, init=False)

    def request(self, tenant: Tenant) -> None:
        self._turns.setdefault(tenant.index, _Turn())
        self.look()

    def over(self, tenant: Tenant) -> None:
        """Note that a tenant has ended its turn, even if TURN_S ended it before."""
        self._turns[tenant.index] = _Turn("over")
        self.look()

    def look(self) -> None:
        """Give the next turn once one has ended by the tenant's message, its death or TURN_S."""
        for tenants in self._by_place():
            self._look(tenants)

    def _by_place(self) -> list[list[Tenant]]:
        """Return groups of tenants that share a device or, without devices, processors."""
        groups: list[tuple[set[object], list[Tenant]]] = []
        for tenant in self.tenants:
            devices = tenant.spec.slice.accelerators
            place = {devices[0].uuid or devices[0].pci} if devices else {*tenant.spec.slice.processors}
            met = [group for group in groups if group[0] & place]
            groups = [group for group in groups if group not in met]
            groups.append(
                (place.union(*(at for at, _ in met)), [*chain.from_iterable(members for _, members in met), tenant])
            )
        return [tenants for _, tenants in groups]

    def _look(self, tenants: Sequence[Tenant]) -> None:
        expected = [tenant for tenant in tenants if not tenant.lost and not tenant.all_ranks(RankPhase.READY)]
        asked = [(tenant, self._turns[tenant.index]) for tenant in expected if tenant.index in self._turns]
        for _, turn in asked:
            if turn.state == "has" and self.now_s() >= turn.since_s + TURN_S:
                # It goes on later, when it reports the end of its turn itself.
                turn.state = "released"
        if len(asked) < len(expected) or any(turn.state == "has" for _, turn in asked):
            return
        for tenant, turn in asked:
            if turn.state == "waits":
                turn.state, turn.since_s = "has", self.now_s()
                _send(tenant, "turn")
                return
        for tenant, turn in asked:
            if turn.state == "over":
                turn.state = "released"
                _send(tenant, "turned")


def _send(tenant: Tenant, kind: str) -> None:
    for rank in tenant.ranks.values():
        rank.link.send(kind)
