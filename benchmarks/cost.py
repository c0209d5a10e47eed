"""The cost of isolating one tenant: the cgroup work of its slice, and its start over that of a plain process."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter_ns

from pairs import interleaved, median_of
from promises import Promise
from rich.console import Console
from rich.table import Table

from cotenant.files import Directory
from cotenant.isolation.backend import Backend
from cotenant.isolation.choose import choose_backend
from cotenant.isolation.plan import plan
from cotenant.isolation.runs import RunName
from cotenant.launch.tenant import TenantSpec, start_tenant
from cotenant.machine.limits import cgroup_mounts
from cotenant.machine.topology import discover

TENANTS = 200
COMMAND = ["/bin/true"]
CGROUP_WORK, START = Promise("<=", 3, "ms"), Promise("<=", 40, "ms")


class Slices:
    """One slice after another in one run of a backend, timed in nanoseconds."""

    def __init__(self, backend: Backend, directory: Path) -> None:
        self._backend = backend
        self._slice = plan(discover(), 1).slices[0]
        self._spec = TenantSpec(self._slice, COMMAND, {}, directory / "log", directory / "tmp", directory / "socket")
        self._logs = Directory(directory)

    def cgroup_work(self) -> int:
        """Create, verify, count, kill and remove one slice; return the nanoseconds."""
        start_ns = perf_counter_ns()
        live = self._backend.create(self._slice)
        live.verify()
        live.counters()
        live.kill()
        live.remove()
        return perf_counter_ns() - start_ns

    def entered(self) -> int:
        """Run a tenant in an existing slice; return the nanoseconds from its start to its end."""
        live = self._backend.create(self._slice)
        read_back = live.verify()
        start_ns = perf_counter_ns()
        tenant = start_tenant(self._spec, live, read_back, self._logs)
        tenant.channel.setblocking(True)
        assert tenant.channel.recv(4096) == b"in\n"
        tenant.channel.send(b"1")
        status = tenant.process.wait()
        end_ns = perf_counter_ns()
        assert status == 0
        tenant.leave()
        live.remove()
        return end_ns - start_ns

    def plain(self) -> int:
        """Run the same command without a slice; return the nanoseconds."""
        start_ns = perf_counter_ns()
        subprocess.run(COMMAND, env={}, stdin=subprocess.DEVNULL, check=True)
        return perf_counter_ns() - start_ns


def main() -> int:
    chosen = choose_backend("auto", cgroup_mounts(), "cotenant-bench")
    backend = chosen.backend
    backend.open(RunName())
    try:
        with tempfile.TemporaryDirectory() as scratch:
            slices = Slices(backend, Path(scratch))
            work = [slices.cgroup_work() for _ in range(TENANTS)]
            entered, plain = interleaved(slices.entered, slices.plain, TENANTS)
    finally:
        backend.close()
    over = [ours - bare for ours, bare in zip(entered, plain, strict=True)]
    table = Table("what", "median", "95 % interval", "n", "promise", title=f"Isolation by {backend.name}")
    kept = True
    for what, values, promise in (
        ("per tenant: cgroup work: create, verify, count, kill, remove", work, CGROUP_WORK),
        ("per tenant: a plain process start", plain, None),
        ("per tenant: start in its slice, over a plain one", over, START),
    ):
        one = median_of([value / 1e6 for value in values])
        verdict = promise.verdict(one.value) if promise else ""
        table.add_row(what, f"{one.value:.2f} ms", f"{one.low:.2f} .. {one.high:.2f}", str(one.n), verdict)
        kept = kept and (promise is None or promise.kept(one.value))
    Console(width=120).print(table)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
