"""Power limits below what a device was made for, unequal ones, and clocks that are held down right now."""

from __future__ import annotations

from cotenant.finding import Finding
from cotenant.findings.check import Answer, Check
from cotenant.findings.facts import Facts
from cotenant.machine.device_state import DeviceState
from cotenant.text import listed

NEARLY = 0.99


def ask(facts: Facts) -> Answer | None:
    if not facts.devices:
        return None
    limits = sorted({one.power_limit_w for one in facts.devices if one.power_limit_w is not None})
    text = f"limit {listed(f'{limit:g} W' for limit in limits)}" if limits else "not told"
    findings = []
    if capped := [one for one in facts.devices if _capped(one)]:
        said = listed(f"device {one.index} {one.power_limit_w:g} of {one.power_default_w:g} W" for one in capped)
        findings.append(
            Finding(
                "power_cap",
                "warning",
                f"Power is limited below the devices' default: {said}.",
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
    if slowed := [one for one in facts.devices if one.slowed_by]:
        said = listed(f"device {one.index} by {' and '.join(one.slowed_by)}" for one in slowed)
        findings.append(
            Finding(
                "device_slowed",
                "warning",
                f"Clocks are held down before anything runs: {said}.",
                "Check fans, inlet temperature and the power supply (nvidia-smi -q -d PERFORMANCE).",
            )
        )
    return Answer(text, tuple(findings))


def _capped(state: DeviceState) -> bool:
    limit, default = state.power_limit_w, state.power_default_w
    return limit is not None and default is not None and limit < NEARLY * default


CHECK = Check("devices", "power cap", ask)
