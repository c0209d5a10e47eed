"""Room for records, data and temporary files."""

from __future__ import annotations

from cotenant.finding import Finding, Severity
from cotenant.findings.check import Answer, Check
from cotenant.findings.facts import Facts
from cotenant.machine.disk import Disk
from cotenant.text import gib

LITTLE, NONE = 5 << 30, 64 << 20
ELSEWHERE = "Name another place: --outdir for records, DATA_DIRECTORY for data, BASE for everything."


def ask(facts: Facts) -> Answer:
    text = "; ".join(f"{gib(disk.free_bytes)} free for {_purposes(disk)} ({disk.path})" for disk in facts.disks)
    return Answer(text, tuple(finding for disk in facts.disks if (finding := _said(disk)) is not None))


def _said(disk: Disk) -> Finding | None:
    where = f"{disk.path}, where {_purposes(disk)} go,"
    if not disk.writable and disk.purposes == ("data",):
        remedy = "What is there can be read; name another DATA_DIRECTORY where sets have to be made."
        return Finding("not_writable", "info", f"{where} cannot be written.", remedy)
    if not disk.writable:
        return Finding("not_writable", "error", f"{where} cannot be written.", ELSEWHERE)
    if disk.free_bytes < LITTLE:
        severity: Severity = "error" if disk.free_bytes < NONE else "warning"
        return Finding("disk_full", severity, f"{where} has {gib(disk.free_bytes)} free.", f"Free some. {ELSEWHERE}")
    return None


def _purposes(disk: Disk) -> str:
    return " and ".join(disk.purposes)


CHECK = Check("disk", "free disk", ask)
