"""A backend without a kernel behind it, for launches in the test's own process."""

import os
from pathlib import Path
from typing import Any

from cotenant.checkout import SOURCE_ROOT
from cotenant.isolation.backend import Backend, Counters, LiveSlice, NotIsolatedError, ReadBack, SliceEntry
from cotenant.isolation.runs import RunName
from cotenant.isolation.slice import Slice
from cotenant.launch.events import Interruption
from cotenant.launch.launch import Launch
from cotenant.launch.limits import Limits
from cotenant.launch.outcome import LaunchResult
from cotenant.launch.tenant import TenantSpec
from patience import HANG_S

SHORT = Limits(timeout_s=HANG_S)


class FakeSlice(LiveSlice):
    """Holds no process, whichever writes itself into `procs`; remembers the calls to it."""

    def __init__(self, tenant: int, procs: tuple[Path, ...], counters: Counters, deeds: list[str]) -> None:
        self.entry = SliceEntry(procs, None)
        self._tenant, self._counters, self._deeds = tenant, counters, deeds

    def verify(self) -> ReadBack:
        return ReadBack()

    def counters(self) -> Counters:
        return self._counters

    def oom_kills(self) -> int | None:
        return self._counters.oom_kills

    def kill(self) -> None:
        """As with a cgroup that nobody has entered."""

    def remove(self) -> None:
        self._deeds.append(f"removed {self._tenant}")


class FakeBackend(Backend):
    name = "fake"
    unenforced: tuple[str, ...] = ()

    def __init__(self, *procs: Path, refused: int | None = None) -> None:
        """Slices that are entered through `procs`; that of the tenant `refused` cannot be had."""
        self._procs, self._refused = procs, refused
        self.deeds: list[str] = []

    def probe(self) -> None:
        """It can be had anywhere."""

    def open(self, run: RunName) -> None:
        """Nothing is made."""

    def create(self, slice_: Slice) -> FakeSlice:
        if slice_.tenant == self._refused:
            raise NotIsolatedError("the kernel says no")
        return FakeSlice(slice_.tenant, self._procs, Counters(), self.deeds)

    def close(self) -> None:
        """Nothing was made."""


def specs(folder: Path, *command: str, tenants: int = 2) -> list[TenantSpec]:
    """Orders of tenants that run `command`."""
    return [
        TenantSpec(
            slice=Slice(tenant, (0,), (0,), 1 << 20, ()),
            command=list(command),
            environment={
                "PATH": os.environ["PATH"],
                "PYTHONPATH": str(SOURCE_ROOT),
                "COTENANT_TENANT": str(tenant),
                "COTENANT_SOCKET": str(folder / f"t{tenant}"),
            },
            log=folder / f"log{tenant}",
            temporary=folder / "temporary",
            socket=folder / f"t{tenant}",
        )
        for tenant in range(tenants)
    ]


def launched(
    planned: list[TenantSpec], backend: FakeBackend | None = None, limits: Limits = SHORT, **more: Any
) -> LaunchResult:
    """Launch tenants in this process."""
    with Interruption() as interruption:
        return Launch(planned, backend or FakeBackend(), interruption, limits, **more).run()
