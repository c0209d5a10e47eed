"""How devices are divided among processes: MIG, MPS, compute mode."""

from __future__ import annotations

from cotenant.finding import Finding
from cotenant.findings.check import Answer, Check
from cotenant.findings.facts import Facts
from cotenant.findings.rules.device_in_use import OF_MPS
from cotenant.text import listed


def ask(facts: Facts) -> Answer | None:
    states = facts.devices
    if not states:
        return None
    mps = [one.index for one in states if one.mps or any(user.name.startswith(OF_MPS) for user in one.processes)]
    mig = [one.index for one in states if one.mig]
    text = f"MIG {_on(mig, len(states))}, MPS {_on(mps, len(states))}"
    return Answer(text, (*_mig(facts, mig), *_mps(mps), *_compute(facts, bool(mps))))


def _on(devices: list[int], total: int) -> str:
    return "off" if not devices else "on" if len(devices) == total else f"on devices {listed(devices)}"


def _mig(facts: Facts, mig: list[int]) -> tuple[Finding, ...]:
    findings = []
    if pending := [one.index for one in facts.devices if one.mig_pending]:
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
    modes = {one.compute_mode for one in facts.devices}
    shared = facts.plan is not None and len(facts.plan.slices) > len(facts.machine.accelerators)
    if "prohibited" in modes:
        sentence = "Devices are in compute mode PROHIBITED: nothing can compute on them."
    elif "exclusive" in modes and shared and not mps:
        sentence = "Devices are in compute mode EXCLUSIVE, and tenants are to share them: the second would fail."
    else:
        return ()
    return (Finding("compute_mode", "error", sentence, "nvidia-smi -c DEFAULT"),)


CHECK = Check("devices", "MIG and MPS", ask)
