"""The connections of a launch's tenants: which process may join, and what it says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from cotenant.launch.admission import claim, most_connections, owner_of
from cotenant.launch.endings import Ending
from cotenant.launch.events import Events
from cotenant.launch.inbox import FailedMessage, TenantMessage, TurnedMessage
from cotenant.launch.limits import grace
from cotenant.launch.rank import Rank, RankPhase
from cotenant.launch.rendezvous import Claim, Link, TakenError
from cotenant.launch.tenant import Tenant
from cotenant.procfs import described
from cotenant.protocol.messages import ProtocolError

LEFT = Ending("failed", "One of its processes left the rendezvous before its record, and the rest did not end.")


class Hearer(Protocol):
    """The launch, which acts on what is heard."""

    def hear(self, tenant: Tenant, rank: Rank, message: TenantMessage) -> None: ...
    def fails(self, tenant: Tenant, ending: Ending) -> None: ...
    def intruded(self, culprit: Tenant, ending: Ending) -> None: ...
    def rank_ended(self, tenant: Tenant, rank: Rank) -> None: ...


class Connections:
    """Accepts the connections of tenants, and reads the messages of those that may speak."""

    def __init__(self, events: Events, tenants: Sequence[Tenant], hearer: Hearer) -> None:
        self._events, self._tenants, self._hearer = events, tenants, hearer

    def accept(self, tenant: Tenant, awaited: bool = True) -> None:
        """Accept the connections that wait at a tenant's socket, as many as leave descriptors for the others.

        Their messages are read as they come if `awaited`, else by `read`.
        """
        most = most_connections(len(self._tenants))
        for link in tenant.listener.accept():
            link.claim = claim(tenant, self._tenants, link.peer, link.user)
            full = len(tenant.links) >= most
            if link.claim is Claim.STRANGER or (full and link.claim is not Claim.OWN):
                self._turn_away(tenant, link)
                continue
            tenant.links.append(link)
            if awaited:
                self.await_messages(tenant, link)
            if full:
                self.close_listener(tenant)
                self._nonsense(tenant, f"more than {most} connections")
                return

    def await_messages(self, tenant: Tenant, link: Link) -> None:
        """Read each message as it comes."""
        self._events.on_readable(link, self.listen, tenant, link)

    def read(self, tenant: Tenant) -> None:
        """Read the messages that have come."""
        for link in [*tenant.links]:
            if link.open:  # A connection before it may have taken its rank.
                self.listen(tenant, link)

    def close_listener(self, tenant: Tenant) -> None:
        self._events.forget(tenant.listener)
        tenant.listener.close()

    def _turn_away(self, tenant: Tenant, link: Link) -> None:
        """Close a connection silently. If another tenant made it, that tenant ends, and before GO the launch with it.

        This is done at once, as the tenant that was kept from its socket might fail first.
        """
        process = described(link.peer)
        link.close()
        culprit = owner_of([other for other in self._tenants if other is not tenant], link.peer)
        if culprit is not None and not culprit.lost:
            sentence = f"Its process {process} has connected to the socket of user {tenant.index}."
            self._hearer.intruded(culprit, Ending("failed", sentence))

    def listen(self, tenant: Tenant, link: Link) -> None:
        """Read a connection's messages; its hello gives it a rank that is still free."""
        rank = tenant.rank_of(link)
        try:
            for message in link.receive():
                if rank is None:
                    rank = self._join(tenant, link, message)
                    continue
                rank.take(message)
                if isinstance(message, FailedMessage) and link.claim is not Claim.OWN:
                    link.close()
                else:
                    self._hearer.hear(tenant, rank, message)
        except ProtocolError as error:
            self._misspoken(tenant, link, error)
        if link.open:
            return
        self._events.forget(link)
        if rank is None:
            link.close()
            tenant.links.remove(link)
        elif tenant.returns and rank.phase < RankPhase.DONE:
            pass  # The program's next start takes this one's place.
        elif rank.record is None and link.claim is not Claim.OWN:
            self._drop(tenant, rank)
        elif rank.record is None and tenant.patience is None:
            tenant.patience = grace(tenant, LEFT)

    def _join(self, tenant: Tenant, link: Link, hello: TenantMessage) -> Rank:
        if link.claim is Claim.OWN:
            for unproven in [rank for rank in tenant.ranks.values() if rank.link.claim is not Claim.OWN]:
                if unproven.go is None:
                    self._drop(tenant, unproven)
        rank = tenant.join(link, hello)
        if rank.starts > 1 and rank.phase < RankPhase.READY:
            # An earlier start may have ended in its turn.
            self._hearer.hear(tenant, rank, TurnedMessage())
        if rank.life is not None:
            self._events.on_readable(rank.life, self._hearer.rank_ended, tenant, rank)
        return rank

    def _drop(self, tenant: Tenant, rank: Rank) -> None:
        """Free a rank whose connection is not proven to be the tenant's."""
        self._events.forget(rank.link)
        rank.link.close()
        if rank.life is not None:
            self._events.forget(rank.life)
            rank.life.close()
        if tenant.ranks.get(rank.number) is rank:
            del tenant.ranks[rank.number]
            tenant.links.remove(rank.link)

    def _misspoken(self, tenant: Tenant, link: Link, error: ProtocolError) -> None:
        """End a tenant that sends nonsense; only refuse a process whose hello names a taken rank.

        A connection that is not proven to be the tenant's is only closed.
        """
        if link.claim is Claim.OWN and not isinstance(error, TakenError):
            self._nonsense(tenant, error)
            return
        if link.claim is Claim.OWN:
            link.send("refused", sentence=str(error))
        link.close()

    def _nonsense(self, tenant: Tenant, what: object) -> None:
        for link in tenant.links:
            self._events.forget(link)
            link.close()
        self._hearer.fails(tenant, Ending("failed", f"It does not speak the protocol: {what}."))
