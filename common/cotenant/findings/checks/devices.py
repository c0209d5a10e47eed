"""The accelerators: which there are, who else uses them, how they are divided, and what slows them.

Most of it is known of NVIDIA's devices only.
"""

from __future__ import annotations

from cotenant.finding import Finding
from cotenant.findings import Answer, check
from cotenant.findings.facts import Facts
from cotenant.findings.rules.devices import OF_MPS
from cotenant.machine.nvidia import DeviceProcess, DeviceState
from cotenant.text import gib, listed

NEARLY = 0.99


@check("devices", "devices", every_suite=True)
def present(facts: Facts) -> Answer:
    """Which devices there are; a driver without its library would let them go unseen."""
    devices = facts.machine.accelerators
    if devices:
        names = sorted({device.name for device in devices})
        vendor, driver = devices[0].vendor, devices[0].driver
        unknown = "" if vendor == "nvidia" else f"; the state of {vendor} devices is not asked"
        return Answer(f"{len(devices)} x {', '.join(names)}, driver {driver}{unknown}")
    if not facts.driver:
        return Answer("none: benchmarks run on processors")
    finding = Finding(
        "devices_unseen",
        "warning",
        "There is an NVIDIA driver, and no device that we may use.",
        "Check nvidia-smi, this user's rights, CUDA_VISIBLE_DEVICES, and: pip install nvidia-ml-py",
    )
    return Answer("none usable", (finding,))


@check("devices", "foreign processes", every_suite=True)
def foreign_processes(facts: Facts) -> Answer | None:
    """Who else has a context on the devices."""
    if not facts.devices:
        return None
    users = [
        _described(state.index, process)
        for state in facts.devices
        for process in state.processes
        if not process.name.startswith(OF_MPS)
    ]
    if not users:
        return Answer("nobody else is on them")
    finding = Finding(
        "device_in_use",
        "warning",
        f"Other processes use the devices: {listed(users)}.",
        "End them, or leave those devices out with CUDA_VISIBLE_DEVICES.",
    )
    return Answer(f"{len(users)} foreign processes", (finding,))


def _described(index: int, process: DeviceProcess) -> str:
    name = process.name or "not to be seen from here"
    memory = "" if process.memory_bytes is None else f", {gib(process.memory_bytes)}"
    return f"{name} (pid {process.pid}{memory}) on device {index}"


@check("devices", "MIG and MPS", every_suite=True)
def modes(facts: Facts) -> Answer | None:
    """How devices are divided among processes: MIG, MPS, compute mode."""
    states = facts.devices
    if not states:
        return None
    mps = [
        state.index for state in states if state.mps or any(user.name.startswith(OF_MPS) for user in state.processes)
    ]
    mig = [state.index for state in states if state.mig]
    text = f"MIG {_on(mig, len(states))}, MPS {_on(mps, len(states))}"
    return Answer(text, (*_mig(facts, mig), *_mps(mps), *_compute(facts, bool(mps))))


def _on(devices: list[int], total: int) -> str:
    return "off" if not devices else "on" if len(devices) == total else f"on devices {listed(devices)}"


def _mig(facts: Facts, mig: list[int]) -> tuple[Finding, ...]:
    findings = []
    if pending := [state.index for state in facts.devices if state.mig_pending]:
        findings.append(
            Finding(
                "mig_pending",
                "warning",
                f"MIG is to change on devices {listed(pending)} with their next reset.",
                "Reset them (nvidia-smi --gpu-reset) or take the change back: every run should find the same devices.",
            )
        )
    if mig and len(mig) < len(facts.devices):
        findings.append(
            Finding(
                "mig_mixed",
                "warning",
                f"Devices {listed(mig)} are partitioned by MIG and the others are not: tenants get unequal devices.",
                "Choose one kind with CUDA_VISIBLE_DEVICES.",
            )
        )
    return tuple(findings)


def _mps(mps: list[int]) -> tuple[Finding, ...]:
    if not mps:
        return ()
    finding = Finding(
        "mps",
        "warning",
        f"MPS serves devices {listed(mps)}: tenants of one device run at once instead of in turn, and fail together.",
        "echo quit | nvidia-cuda-mps-control",
    )
    return (finding,)


def _compute(facts: Facts, mps: bool) -> tuple[Finding, ...]:
    compute_modes = {state.compute_mode for state in facts.devices}
    shared = facts.plan is not None and len(facts.plan.slices) > len(facts.machine.accelerators)
    if "prohibited" in compute_modes:
        sentence = "Devices are in compute mode PROHIBITED: nothing can compute on them."
    elif "exclusive" in compute_modes and shared and not mps:
        sentence = "Devices are in compute mode EXCLUSIVE, and tenants are to share them: the second would fail."
    else:
        return ()
    return (Finding("compute_mode", "error", sentence, "nvidia-smi -c DEFAULT"),)


@check("devices", "ECC", every_suite=True)
def ecc(facts: Facts) -> Answer | None:
    """Device memory that corrects its errors, and errors that it could not correct."""
    if not facts.devices:
        return None
    known = [state for state in facts.devices if state.ecc is not None]
    off = [state.index for state in known if not state.ecc]
    text = "not told" if not known else "on" if not off else "off" if len(off) == len(known) else "differs"
    findings = []
    if bad := [state for state in facts.devices if state.uncorrected_errors]:
        errors = listed(f"{state.uncorrected_errors} on device {state.index}" for state in bad)
        findings.append(
            Finding(
                "ecc_errors",
                "error",
                f"Device memory had errors that could not be corrected since the last reboot: {errors}.",
                "Reset the device; if they come again, have it replaced. What was computed on it may be wrong.",
            )
        )
    if pending := [state.index for state in facts.devices if state.repair_pending]:
        findings.append(
            Finding(
                "memory_repair_pending",
                "warning",
                f"Bad memory of devices {listed(pending)} waits for a reset to be taken out of use.",
                "nvidia-smi --gpu-reset, or reboot.",
            )
        )
    if off and len(off) < len(known):
        findings.append(
            Finding(
                "ecc_differs",
                "warning",
                f"ECC is off on devices {listed(off)} and on on the others: their memory is not equally fast.",
                "nvidia-smi -e 1, then reset or reboot.",
            )
        )
    return Answer(text, tuple(findings))


@check("devices", "persistence", every_suite=True)
def persistence(facts: Facts) -> Answer | None:
    """Without persistence a driver lets go of an idle device, and each launch pays for its return."""
    if not facts.devices:
        return None
    off = [state.index for state in facts.devices if state.persistent is False]
    if not off:
        return Answer("on" if any(state.persistent is not None for state in facts.devices) else "not told")
    finding = Finding(
        "persistence",
        "warning",
        f"Persistence mode is off on devices {listed(off)}: the driver starts anew with each launch, and forgets "
        "what clocks and limits were set.",
        "nvidia-smi -pm 1, or run nvidia-persistenced.",
    )
    return Answer("off", (finding,))


@check("devices", "power cap", every_suite=True)
def power_cap(facts: Facts) -> Answer | None:
    """Power limits below what a device was made for, unequal ones, and clocks that are held down right now."""
    if not facts.devices:
        return None
    limits = sorted({state.power_limit_w for state in facts.devices if state.power_limit_w is not None})
    text = f"limit {listed(f'{limit:g} W' for limit in limits)}" if limits else "not told"
    findings = []
    if capped := [state for state in facts.devices if _capped(state)]:
        caps = listed(
            f"device {state.index} {state.power_limit_w:g} of {state.power_default_w:g} W" for state in capped
        )
        findings.append(
            Finding(
                "power_cap",
                "warning",
                f"Power is limited below the devices' default: {caps}.",
                "nvidia-smi -pl with the default, or publish the limit with the numbers.",
            )
        )
    elif len(limits) > 1:
        findings.append(
            Finding(
                "power_differs",
                "warning",
                f"The devices' power limits differ: {listed(f'{limit:g} W' for limit in limits)}.",
                "nvidia-smi -pl with one limit for all.",
            )
        )
    if slowed := [state for state in facts.devices if state.slowed_by]:
        causes = listed(f"device {state.index} by {' and '.join(state.slowed_by)}" for state in slowed)
        findings.append(
            Finding(
                "device_slowed",
                "warning",
                f"Clocks are held down before anything runs: {causes}.",
                "Check fans, inlet temperature and the power supply (nvidia-smi -q -d PERFORMANCE).",
            )
        )
    return Answer(text, tuple(findings))


def _capped(state: DeviceState) -> bool:
    limit, default = state.power_limit_w, state.power_default_w
    return limit is not None and default is not None and limit < NEARLY * default
