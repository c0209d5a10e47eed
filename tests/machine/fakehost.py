"""Trees of kernel files below a temporary root, and an NVML without a driver."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from cotenant.procfs import format_list


def write(root: Path, files: Mapping[str, object]) -> Path:
    """Write each file below `root`, with its newline, and return `root`."""
    for folder in {(root / name).parent for name in files}:
        folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (root / name).write_text(f"{content}\n")
    return root


def processors(root: Path, cores: Sequence[Sequence[int]], packages: Sequence[int] = ()) -> Path:
    """Write the topology of these physical cores, given by their logical ids."""
    files: dict[str, object] = {"sys/devices/system/cpu/online": format_list(n for core in cores for n in core)}
    for position, core in enumerate(cores):
        for number in core:
            topology = f"sys/devices/system/cpu/cpu{number}/topology"
            files[f"{topology}/core_cpus_list"] = format_list(core)
            files[f"{topology}/thread_siblings_list"] = format_list(core)
            files[f"{topology}/core_id"] = position
            files[f"{topology}/physical_package_id"] = packages[position] if packages else 0
    return write(root, files)


def node(root: Path, number: int, cpulist: str, memory_kb: int) -> Path:
    directory = f"sys/devices/system/node/node{number}"
    meminfo = f"Node {number} MemTotal:       {memory_kb} kB\nNode {number} MemFree:        1 kB"
    return write(root, {f"{directory}/cpulist": cpulist, f"{directory}/meminfo": meminfo})


def mount(point: str, kind: str, options: str, shown: str = "/") -> str:
    """One line of mountinfo, with an optional field before the dash as real ones have."""
    return f"31 23 0:28 {shown} {point} rw,nosuid,relatime shared:9 - {kind} {kind} rw,{options}"


class NVMLError(Exception):
    pass


@dataclass
class Board:
    uuid: str
    bus: str
    name: str = "NVIDIA H200"
    memory: int | None = 141 << 30
    reserved: int = 0
    """The reserved part of the memory, in bytes."""
    parts: tuple[Board, ...] = ()
    mig: bool = False
    lost: bool = False
    mig_pending: bool | None = None
    persistent: bool = True
    ecc: bool | None = True
    errors: int | None = 0
    repair_pending: bool = False
    mode: int = 0
    limit_mw: int | None = 700_000
    default_mw: int = 700_000
    reasons: int = 0
    cores: int = 16896
    running: tuple[tuple[int, int | None], ...] = ()
    """Process ids and the bytes of device memory that they use."""
    served: tuple[tuple[int, int | None], ...] = ()
    """The same of clients of MPS."""
    slowed_ns: tuple[int, int] | None = (0, 0)
    """Nanoseconds slowed by the power limit, by heat."""


def unsupported(*asked: object) -> Any:
    raise NVMLError("Not Supported")


def known(value: Any) -> Any:
    """Return the value of a board that knows it; raise NVMLError for one that does not."""
    return unsupported() if value is None else value


def mig_mode(board: Board) -> list[int]:
    if not board.mig and board.mig_pending is None:
        unsupported()
    return [int(board.mig), int(board.mig if board.mig_pending is None else board.mig_pending)]


def uncorrected_errors(board: Board, kind: int, counter: int) -> Any:
    assert (kind, counter) == (1, 0), "uncorrected errors since the last reboot"
    return known(board.errors)


def users(processes: Sequence[tuple[int, int | None]]) -> list[SimpleNamespace]:
    return [SimpleNamespace(pid=pid, usedGpuMemory=memory) for pid, memory in processes]


ANSWERS: dict[str, Callable[..., Any]] = {
    "PciInfo": lambda board: SimpleNamespace(busId=board.bus),
    "Name": lambda board: board.name,
    "UUID": lambda board: board.uuid,
    "MemoryInfo": lambda board, version=0: SimpleNamespace(total=known(board.memory), reserved=board.reserved),
    "MigMode": mig_mode,
    "MaxMigDeviceCount": lambda board: 7,
    "MigDeviceHandleByIndex": lambda board, number: known(dict(enumerate(board.parts)).get(number)),
    "PersistenceMode": lambda board: int(board.persistent),
    "EccMode": lambda board: [int(known(board.ecc))] * 2,
    "TotalEccErrors": uncorrected_errors,
    "RemappedRows": lambda board: [0, 0, int(board.repair_pending), 0],
    "RetiredPagesPendingStatus": unsupported,
    "ComputeMode": lambda board: board.mode,
    "PowerManagementLimit": lambda board: known(board.limit_mw),
    "PowerManagementDefaultLimit": lambda board: board.default_mw,
    "CurrentClocksEventReasons": lambda board: board.reasons,
    "NumGpuCores": lambda board: board.cores,
    "MaxClockInfo": lambda board, kind: {1: 1980}[kind],
    "ComputeRunningProcesses": lambda board: users(board.running),
    "MPSComputeRunningProcesses": lambda board: users(board.served),
    "GraphicsRunningProcesses": unsupported,
    "ViolationStatus": lambda board, policy: SimpleNamespace(violationTime=known(board.slowed_ns)[policy]),
}
"""The answers of a board to pynvml's nvmlDeviceGet..."""


@dataclass
class FakeNvml:
    """The functions of pynvml that are asked, answering for invented boards."""

    boards: Sequence[Board] = ()
    starts: bool = True
    calls: list[str] = field(default_factory=list)
    answers: Mapping[str, Callable[..., Any]] = field(default_factory=lambda: ANSWERS)
    NVMLError: Any = NVMLError

    def nvmlInit(self) -> None:  # noqa: N802
        self.calls.append("init")
        if not self.starts:
            raise NVMLError("Driver Not Loaded")

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.calls.append("shutdown")

    def nvmlSystemGetDriverVersion(self) -> str:  # noqa: N802
        return "580.65.06"

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.boards)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Board:  # noqa: N802
        if self.boards[index].lost:
            raise NVMLError("GPU is lost")
        return self.boards[index]

    def __getattr__(self, name: str) -> Callable[..., Any]:
        try:
            return self.answers[name.removeprefix("nvmlDeviceGet")]
        except KeyError:
            raise AttributeError(name) from None
