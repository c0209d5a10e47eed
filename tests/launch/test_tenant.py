"""A tenant's own processes: what its end meets."""

import signal
from pathlib import Path

from cotenant.isolation.backend import Counters, ReadBack
from cotenant.isolation.shim import ForkServer
from cotenant.launch.tenant import start_tenant
from tenants.fakes import FakeSlice, orders


def test_kill_meets_a_shim_that_has_not_entered_yet(tmp_path: Path, forks: ForkServer) -> None:
    """Just forked it carries no marker, and leads no group."""
    (order,) = orders(tmp_path, "/bin/sleep", "1000", tenants=1)
    for _ in range(20):
        tenant = start_tenant(order, FakeSlice(0, (), Counters(), []), ReadBack(), forks)
        # Before `leave` closes the channel: a shim that sees that first ends by itself.
        tenant.kill()
        tenant.leave()
        assert tenant.status == -signal.SIGKILL
