"""Device memory that corrects its errors, and errors that it could not correct."""

from __future__ import annotations

from cotenant.finding import Finding
from cotenant.findings.check import Answer, Check
from cotenant.findings.facts import Facts
from cotenant.text import listed


def ask(facts: Facts) -> Answer | None:
    told = [one for one in facts.devices if one.ecc is not None]
    if not facts.devices:
        return None
    off = [one.index for one in told if not one.ecc]
    text = "not told" if not told else "on" if not off else "off" if len(off) == len(told) else "differs"
    findings = []
    if bad := [one for one in facts.devices if one.uncorrected_errors]:
        errors = listed(f"{one.uncorrected_errors} on device {one.index}" for one in bad)
        findings.append(
            Finding(
                "ecc_errors",
                "error",
                f"Device memory had errors that could not be corrected since the last reboot: {errors}.",
                "Reset the device; if they come again, have it replaced. What was computed on it may be wrong.",
            )
        )
    if pending := [one.index for one in facts.devices if one.repair_pending]:
        findings.append(
            Finding(
                "memory_repair_pending",
                "warning",
                f"Bad memory of devices {listed(pending)} waits for a reset to be taken out of use.",
                "nvidia-smi --gpu-reset, or reboot.",
            )
        )
    if off and len(off) < len(told):
        findings.append(
            Finding(
                "ecc_differs",
                "warning",
                f"ECC is off on devices {listed(off)} and on on the others: their memory is not equally fast.",
                "nvidia-smi -e 1, then reset or reboot.",
            )
        )
    return Answer(text, tuple(findings))


CHECK = Check("devices", "ECC", ask)
