"""A tenant's own processes: what its end meets."""

import signal
from pathlib import Path

from cotenant.isolation.backend import Counters, ReadBack
from cotenant.launch.tenant import start_tenant
from tenants.fakes import FakeSlice, specs


def test_kill_meets_one_that_has_not_entered_its_slice_yet(tmp_path: Path) -> None:
    """It has just been started."""
    (spec,) = specs(tmp_path, "/bin/sleep", "1000", tenants=1)
    for _ in range(20):
        tenant = start_tenant(spec, FakeSlice(0, (), Counters(), []), ReadBack())
        # Before `leave` closes the channel: one that sees that first ends by itself.
        tenant.kill()
        tenant.leave()
        assert tenant.status == -signal.SIGKILL
