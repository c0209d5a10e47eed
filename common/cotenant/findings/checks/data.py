"""The input of the chosen jobs."""

from __future__ import annotations

from cotenant.finding import Finding
from cotenant.findings.check import Answer, Check
from cotenant.findings.facts import Facts
from cotenant.text import listed


def ask(facts: Facts) -> Answer | None:
    if facts.jobs is None:
        return None
    readers = [job for job in facts.jobs if job.reads]
    lacking = [job for job in readers if job.missing]
    if not lacking:
        return Answer(f"there for all {len(readers)} jobs that read files" if readers else "no job reads files")
    findings = [
        Finding(
            "missing_data",
            "error",
            f"The input of {job.name} is missing: {listed(job.missing)}.",
            "Put it there, or name another place in DATA_DIRECTORY.",
        )
        for job in lacking
        if not job.made
    ]
    if made := sorted({job.name for job in lacking if job.made}):
        findings.append(
            Finding(
                "data_to_be_made",
                "info",
                f"The input of {listed(made)} is not there yet.",
                "A suite makes it at its start; ./download_datasets.sh makes it now.",
            )
        )
    return Answer(f"missing for {len(lacking)} of {len(readers)} jobs that read files", tuple(findings))


CHECK = Check("data", "input", ask)
