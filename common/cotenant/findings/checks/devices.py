"""The accelerators: which there are, their other users, their division, and causes that slow them.

Most of it is known for NVIDIA's devices only.
"""

from __future__ import annotations

from cotenant.finding import error, warning
from cotenant.findings import Inspection, check
from cotenant.findings.facts import Facts
from cotenant.findings.rules.devices import OF_MPS
from cotenant.machine.nvidia import DeviceProcess, DeviceState
from cotenant.text import gib, listed

NEARLY = 0.99


@check("devices", "devices", every_suite=True)
def present(facts: Facts) -> Inspection:
    """The host's devices; devices that do not answer would go unseen."""
    devices = facts.machine.accelerators
    if devices:
        names = sorted({device.name for device in devices})
        vendor, driver = devices[0].vendor, devices[0].driver
        unknown = "" if vendor == "nvidia" else f"; the state of {vendor} devices is not asked"
        return f"{len(devices)} x {', '.join(names)}, driver {driver}{unknown}"
    if not facts.silence:
        return "none: benchmarks run on processors"
    yield warning(
        f"An NVIDIA device or its driver is present, but no device answers ({facts.silence}): everything runs on "
        "processors, and without --jobs the suite is profiles/cpu.json.",
        "Run nvidia-smi: if it fails, too, reload the driver or reboot; else check this user's rights to "
        "/dev/nvidia*, CUDA_VISIBLE_DEVICES, and: pip install nvidia-ml-py",
        rule="devices_unseen",
    )
    return "none usable"


@check("devices", "foreign processes", every_suite=True)
def foreign_processes(facts: Facts) -> Inspection:
    """Other processes that have a context on the devices."""
    if not facts.devices:
        return None
    users = [
        _described(state.index, process)
        for state in facts.devices
        for process in state.processes
        if not _of_mps(process)
    ]
    if not users:
        return "no other process uses them"
    yield warning(
        f"Other processes use the devices: {listed(users)}.",
        "End them, or leave those devices out with CUDA_VISIBLE_DEVICES.",
        rule="device_in_use",
    )
    return f"{len(users)} foreign processes"


def _described(index: int, process: DeviceProcess) -> str:
    name = process.name or "not to be seen from here"
    memory = "" if process.memory_bytes is None else f", {gib(process.memory_bytes)}"
    return f"{name} (pid {process.pid}{memory}) on device {index}"


@check("devices", "C compiler")
def compiler(facts: Facts) -> Inspection:
    """Triton compiles kernels on the spot: torch's own, as in the backward of tacotron2, and the ones of --compile."""
    if not facts.machine.accelerators:
        return None
    if not facts.compiler_lacks:
        return "a C compiler and Python.h are there"
    yield warning(
        f"There is no {facts.compiler_lacks}: steps that need a kernel of Triton's are `unsupported`.",
        "Debian: apt-get install gcc python3-dev.",
        rule="compiler_missing",
    )
    return f"no {facts.compiler_lacks}"


@check("devices", "MIG and MPS", every_suite=True)
def modes(facts: Facts) -> Inspection:
    """The division of devices among processes: MIG, MPS, compute mode."""
    states = facts.devices
    if not states:
        return None
    mps = [state.index for state in states if state.mps or any(map(_of_mps, state.processes))]
    mig = [state.index for state in states if state.mig]
    slices = () if facts.plan is None else facts.plan.slices
    by_mps = any(slice_.device_share and slice_.device_share.mode.kind == "mps" for slice_ in slices)
    if pending := [state.index for state in states if state.mig_pending]:
        yield warning(
            f"MIG is to change on devices {listed(pending)} with their next reset.",
            "Reset them (nvidia-smi --gpu-reset) or take the change back: every run should find the same devices.",
            rule="mig_pending",
        )
    if mig and len(mig) < len(states):
        yield warning(
            f"Devices {listed(mig)} are partitioned by MIG and the others are not: users get unequal devices.",
            "Choose one kind with CUDA_VISIBLE_DEVICES.",
            rule="mig_mixed",
        )
    if mps and not by_mps:
        yield warning(
            f"MPS serves devices {listed(mps)}: users of one device run at once instead of in turn, and fail together.",
            "echo quit | nvidia-cuda-mps-control",
            rule="mps",
        )
    compute_modes = {state.compute_mode for state in states}
    shared = len(slices) > len(facts.machine.accelerators)
    if "prohibited" in compute_modes:
        sentence = "Devices are in compute mode PROHIBITED: nothing can compute on them."
        yield error(sentence, "nvidia-smi -c DEFAULT", rule="compute_mode")
    # An exclusive device's single process is the server of MPS.
    elif "exclusive" in compute_modes and shared and not mps:
        sentence = "Devices are in compute mode EXCLUSIVE, and users are to share them: the second would fail."
        yield error(sentence, "nvidia-smi -c DEFAULT", rule="compute_mode")
    return f"MIG {_on(mig, len(states))}, MPS {_on(mps, len(states))}"


def _of_mps(process: DeviceProcess) -> bool:
    return process.name.startswith(OF_MPS)


def _on(devices: list[int], total: int) -> str:
    return "off" if not devices else "on" if len(devices) == total else f"on devices {listed(devices)}"


@check("devices", "ECC", every_suite=True)
def ecc(facts: Facts) -> Inspection:
    """Device memory that corrects its errors, and errors that it could not correct."""
    if not facts.devices:
        return None
    states = [state for state in facts.devices if state.ecc is not None]
    off = [state.index for state in states if not state.ecc]
    text = "not known" if not states else "on" if not off else "off" if len(off) == len(states) else "differs"
    if bad := [state for state in facts.devices if state.uncorrected_errors]:
        errors = listed(f"{state.uncorrected_errors} on device {state.index}" for state in bad)
        yield error(
            f"Device memory had errors that could not be corrected since the last reboot: {errors}.",
            "Reset the device; if they come again, have it replaced. Results computed on it may be wrong.",
            rule="ecc_errors",
        )
    if pending := [state.index for state in facts.devices if state.repair_pending]:
        yield warning(
            f"Bad memory of devices {listed(pending)} waits for a reset to be taken out of use.",
            "nvidia-smi --gpu-reset, or reboot.",
            rule="memory_repair_pending",
        )
    if off and len(off) < len(states):
        yield warning(
            f"ECC is off on devices {listed(off)} and on on the others: their memory is not equally fast.",
            "nvidia-smi -e 1, then reset or reboot.",
            rule="ecc_differs",
        )
    return text


@check("devices", "persistence", every_suite=True)
def persistence(facts: Facts) -> Inspection:
    """Without persistence a driver lets go of an idle device, and each launch pays for its return."""
    if not facts.devices:
        return None
    off = [state.index for state in facts.devices if state.persistent is False]
    if not off:
        return "on" if any(state.persistent is not None for state in facts.devices) else "not known"
    yield warning(
        f"Persistence mode is off on devices {listed(off)}: the driver starts again with each launch, and forgets "
        "clocks and limits that were set.",
        "nvidia-smi -pm 1, or run nvidia-persistenced.",
    )
    return "off"


@check("devices", "power cap", every_suite=True)
def power_cap(facts: Facts) -> Inspection:
    """Power limits below the device's default, unequal ones, and clocks that are held down right now."""
    if not facts.devices:
        return None
    limits = sorted({state.power_limit_w for state in facts.devices if state.power_limit_w is not None})
    text = f"limit {listed(f'{limit:g} W' for limit in limits)}" if limits else "not known"
    if capped := [state for state in facts.devices if _capped(state)]:
        caps = listed(
            f"device {state.index} {state.power_limit_w:g} of {state.power_default_w:g} W" for state in capped
        )
        yield warning(
            f"Power is limited below the devices' default: {caps}.",
            "nvidia-smi -pl with the default, or publish the limit with the numbers.",
        )
    elif len(limits) > 1:
        yield warning(
            f"The devices' power limits differ: {listed(f'{limit:g} W' for limit in limits)}.",
            "nvidia-smi -pl with one limit for all.",
            rule="power_differs",
        )
    if slowed := [state for state in facts.devices if state.slowed_by]:
        causes = listed(f"device {state.index} by {' and '.join(state.slowed_by)}" for state in slowed)
        yield warning(
            f"Clocks are held down before anything runs: {causes}.",
            "Check fans, inlet temperature and the power supply (nvidia-smi -q -d PERFORMANCE).",
            rule="device_slowed",
        )
    return text


def _capped(state: DeviceState) -> bool:
    limit, default = state.power_limit_w, state.power_default_w
    return limit is not None and default is not None and limit < NEARLY * default
