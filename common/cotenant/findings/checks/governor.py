"""What chooses the processors' clocks: a governor that waits for load to show makes short work slow."""

from __future__ import annotations

from cotenant.finding import Finding
from cotenant.findings.check import Answer, Check
from cotenant.findings.facts import Facts
from cotenant.machine.cpu import Clocking
from cotenant.procfs import format_list

SELF_GOVERNED = ("intel_pstate", "amd-pstate-epp")
"""With these drivers the hardware chooses, and "powersave" is not the governor of that name."""
AWAKE = {"performance", "balance_performance"}


def ask(facts: Facts) -> Answer:
    clocking = facts.clocking
    if not clocking.governors:
        return Answer("not told here: the clocks are chosen outside of this kernel")
    text = f"{', '.join(clocking.governors)} ({clocking.driver or 'unnamed driver'})"
    findings = []
    if not _fast(clocking):
        findings.append(
            Finding(
                "governor",
                "warning",
                f"The processors' clocks are governed by {', '.join(clocking.governors + clocking.preferences)}: "
                "they follow the load, and rates with them.",
                "cpupower frequency-set -g performance",
            )
        )
    if clocking.capped:
        findings.append(
            Finding(
                "frequency_capped",
                "warning",
                f"The clocks of processors {format_list(clocking.capped)} are capped below what they can do.",
                "cpupower frequency-set -u with the highest value of cpupower frequency-info",
            )
        )
    return Answer(text, tuple(findings))


def _fast(clocking: Clocking) -> bool:
    if clocking.governors == ("performance",):
        return True
    chosen = bool(clocking.preferences) and set(clocking.preferences) <= AWAKE
    return clocking.driver in SELF_GOVERNED and chosen


CHECK = Check("processors", "governor", ask)
