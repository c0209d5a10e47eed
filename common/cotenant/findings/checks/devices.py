"""Which devices there are; a driver without its library would let them go unseen."""

from __future__ import annotations

from cotenant.finding import Finding
from cotenant.findings.check import Answer, Check
from cotenant.findings.facts import Facts


def ask(facts: Facts) -> Answer:
    found = facts.machine.accelerators
    if found:
        names = sorted({device.name for device in found})
        vendor, driver = found[0].vendor, found[0].driver
        unasked = "" if vendor == "nvidia" else f"; the state of {vendor} devices is not asked"
        return Answer(f"{len(found)} x {', '.join(names)}, driver {driver}{unasked}")
    if not facts.driver:
        return Answer("none: benchmarks run on processors")
    finding = Finding(
        "devices_unseen",
        "warning",
        "There is an NVIDIA driver, and no device that we may use.",
        "Check nvidia-smi, this user's rights, CUDA_VISIBLE_DEVICES, and: pip install nvidia-ml-py",
    )
    return Answer("none usable", (finding,))


CHECK = Check("devices", "devices", ask)
