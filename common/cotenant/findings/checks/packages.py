"""What the chosen jobs import and this environment lacks, and jobs that cannot be started at all."""

from __future__ import annotations

from cotenant.finding import Finding
from cotenant.findings.check import Answer, Check
from cotenant.findings.facts import Facts
from cotenant.text import listed

NAMES = {"PIL": "pillow", "ale_py": "ale-py", "pynvml": "nvidia-ml-py", "yaml": "pyyaml", "sklearn": "scikit-learn"}
"""Packages that are installed under another name than they are imported by."""


def ask(facts: Facts) -> Answer | None:
    if facts.jobs is None:
        return None
    missing: dict[str, list[str]] = {}
    for job in facts.jobs:
        for package in job.packages:
            missing.setdefault(package, []).append(job.name)
    findings = [job.refusal for job in facts.jobs if job.refusal is not None]
    findings += [
        Finding(
            "missing_package",
            "error",
            f"The package '{package}' is missing; it is imported by {listed(jobs)}.",
            f"pip install {NAMES.get(package, package)}",
        )
        for package, jobs in sorted(missing.items())
    ]
    text = f"{listed(sorted(missing))} missing" if missing else f"all that {len(facts.jobs)} jobs import are there"
    return Answer(text, tuple(dict.fromkeys(findings)))


CHECK = Check("software", "packages", ask)
