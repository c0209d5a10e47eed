"""NVML's answers as they come: every call that our code makes, and some that tell what its answers mean."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

SYSTEM = (
    "nvmlSystemGetDriverVersion",
    "nvmlSystemGetNVMLVersion",
    "nvmlSystemGetCudaDriverVersion_v2",
    "nvmlDeviceGetCount",
)
_GPU, _SM_CLOCK, _MEMORY_CLOCK = 0, 1, 2
_UNCORRECTED, _SINCE_REBOOT = 1, 0
USED: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("nvmlDeviceGetName", ()),
    ("nvmlDeviceGetUUID", ()),
    ("nvmlDeviceGetPciInfo", ()),
    ("nvmlDeviceGetMemoryInfo", ()),
    ("nvmlDeviceGetMigMode", ()),
    ("nvmlDeviceGetMaxMigDeviceCount", ()),
    ("nvmlDeviceGetMigDeviceHandleByIndex", (0,)),
    ("nvmlDeviceGetEccMode", ()),
    ("nvmlDeviceGetTotalEccErrors", (_UNCORRECTED, _SINCE_REBOOT)),
    ("nvmlDeviceGetPersistenceMode", ()),
    ("nvmlDeviceGetRemappedRows", ()),
    ("nvmlDeviceGetRetiredPagesPendingStatus", ()),
    ("nvmlDeviceGetComputeMode", ()),
    ("nvmlDeviceGetPowerManagementLimit", ()),
    ("nvmlDeviceGetPowerManagementDefaultLimit", ()),
    ("nvmlDeviceGetCurrentClocksThrottleReasons", ()),
    ("nvmlDeviceGetCurrentClocksEventReasons", ()),
    ("nvmlDeviceGetViolationStatus", (0,)),
    ("nvmlDeviceGetViolationStatus", (1,)),
    ("nvmlDeviceGetComputeRunningProcesses", ()),
    ("nvmlDeviceGetMPSComputeRunningProcesses", ()),
    ("nvmlDeviceGetGraphicsRunningProcesses", ()),
    ("nvmlDeviceGetUtilizationRates", ()),
    ("nvmlDeviceGetPowerUsage", ()),
    ("nvmlDeviceGetTotalEnergyConsumption", ()),
    ("nvmlDeviceGetClockInfo", (_SM_CLOCK,)),
    ("nvmlDeviceGetClockInfo", (_MEMORY_CLOCK,)),
    ("nvmlDeviceGetTemperature", (_GPU,)),
    ("nvmlDeviceGetTemperatureV", (_GPU,)),
    ("nvmlDeviceGetNumGpuCores", ()),
    ("nvmlDeviceGetMaxClockInfo", (_SM_CLOCK,)),
    ("nvmlDeviceGetVbiosVersion", ()),
    ("nvmlDeviceGetMaxPcieLinkGeneration", ()),
    ("nvmlDeviceGetCurrPcieLinkWidth", ()),
)
"""What our code asks a device."""
FURTHER: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("nvmlDeviceGetSupportedClocksEventReasons", ()),
    ("nvmlDeviceGetEnforcedPowerLimit", ()),
    ("nvmlDeviceGetCudaComputeCapability", ()),
    ("nvmlDeviceGetArchitecture", ()),
    ("nvmlDeviceGetIndex", ()),
    ("nvmlDeviceGetPerformanceState", ()),
)
"""What tells what those answers mean, or will take the place of a call that goes."""
INSTEAD = {
    "nvmlDeviceGetCurrentClocksThrottleReasons": "nvmlDeviceGetCurrentClocksEventReasons",
    "nvmlDeviceGetCurrentClocksEventReasons": "nvmlDeviceGetCurrentClocksThrottleReasons",
    "nvmlDeviceGetTemperature": "nvmlDeviceGetTemperatureV",
    "nvmlDeviceGetTemperatureV": "nvmlDeviceGetTemperature",
}
"""Either of the two is enough: the first leaves with a next CUDA, and the second came with a late one."""
FIELDS = {
    74: "held by power, ns",
    75: "held by heat, ns",
    83: "total energy, mJ",
    185: "power, averaged, mW",
    186: "power, instant, mW",
}
"""Of nvmlDeviceGetFieldValues, by the numbers of nvml.h."""


def answers(nvml: Any) -> dict[str, Any]:
    """Return each call's answer, its error or that the bindings lack it; `nvml` is pynvml, already started."""
    found: dict[str, Any] = {"system": {name: answer(nvml, name) for name in SYSTEM}, "devices": []}
    for index in range(found["system"]["nvmlDeviceGetCount"].get("answer") or 0):
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
        except nvml.NVMLError as error:
            found["devices"].append({"nvmlDeviceGetHandleByIndex": failure(error)})
            continue
        device = {_spelled(name, rest): answer(nvml, name, handle, *rest) for name, rest in (*USED, *FURTHER)}
        device["nvmlDeviceGetFieldValues"] = fields(nvml, handle)
        found["devices"].append(device)
    return found


def answer(nvml: Any, name: str, *arguments: Any) -> dict[str, Any]:
    """Return the answer of one call and the microseconds of the first and of a second one."""
    call: Callable[..., Any] | None = getattr(nvml, name, None)
    if call is None:
        return {"lacking": "The bindings have no such function."}
    times_us = []
    for _ in range(2):
        begin = time.perf_counter()
        try:
            value = {"answer": plain(call(*arguments))}
        except nvml.NVMLError as error:
            value = failure(error)
        except Exception as error:  # Of the bindings themselves, as a symbol that the driver's library lacks.
            value = {"error": type(error).__name__, "text": str(error)}
        times_us.append(round((time.perf_counter() - begin) * 1e6, 1))
    return value | {"us": times_us}


def failure(error: Any) -> dict[str, Any]:
    return {"error": type(error).__name__, "value": getattr(error, "value", None), "text": str(error)}


def fields(nvml: Any, handle: Any) -> dict[str, Any]:
    """Return quantities that have no function of their own, one at a time: one that is unknown fails them all."""
    found: dict[str, Any] = {}
    for number, meaning in FIELDS.items():
        try:
            (value,) = nvml.nvmlDeviceGetFieldValues(handle, [number])
            found[str(number)] = {"meaning": meaning, **plain(value)}
        except Exception as error:
            found[str(number)] = {"meaning": meaning} | failure(error)
    return found


def plain(value: Any) -> Any:
    """Return an answer as JSON holds it: structures and unions of C become objects of their fields."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if names := [field[0] for field in getattr(value, "_fields_", ())]:
        return {name: plain(getattr(value, name)) for name in names}
    if type(value).__name__.startswith("LP_"):  # A handle, of which only that it is there means anything.
        return type(value).__name__
    return {name: plain(each) for name, each in vars(value).items()} if hasattr(value, "__dict__") else repr(value)


def lacking(found: dict[str, Any]) -> list[str]:
    """Return the calls of ours that the bindings lack, or that break in them: which no device explains."""
    broken = {
        name.partition("(")[0]
        for device in found["devices"]
        for name, value in device.items()
        if "lacking" in value or ("error" in value and not str(value["error"]).startswith("NVMLError"))
    }
    ours = {name for name, _ in USED} & broken
    return sorted(name for name in ours if INSTEAD.get(name, name) in broken)


def _spelled(name: str, rest: tuple[Any, ...]) -> str:
    return f"{name}({', '.join(map(str, rest))})" if rest else name
