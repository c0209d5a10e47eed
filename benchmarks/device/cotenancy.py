"""Several tenants on one device: what each keeps, taking turns and under MPS, and what one can do to the others."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from device.book import Skip
from device.jobs import JOBS, Job
from device.part import Given
from device.suite import PLENTY, entry, finished, job_entry, launched
from device.task import errors, rate
from device.tasks import keep_record

BUDGET_S, SMALL_BUDGET_S = 2.0, 0.5
LAUNCH_S = 10.0
"""What a launch takes with its start and end."""
HUNG_S, TURN_S = 45.0, 15.0
"""A launch that takes longer is ended, or it would take the time of all others; each tenant tries its convolutions."""
ABOVE = 1.1
"""Tenants of a device cannot keep more of their rates than so much each: above it something did not run together."""
DEEDS = Path(__file__).parent / "deeds" / "run.sh"
MPS_CONTROL = "nvidia-cuda-mps-control"
EXPECTED = {"hog": ("device_out_of_memory",), "die": ("failed", "aborted")}
"""Deeds, a memory hog and a kill -9, and how the tenant ends that does it."""
SMALL, *LARGER = "vae", "dcgan_bf16", "convnet"
COURSE = (
    (SMALL, 1, "time"),
    (SMALL, 4, "time"),
    (SMALL, 4, "mps"),
    (SMALL, 4, "mps:25"),
    ("hog", 2, "time"),
    ("die", 2, "time"),
    *((name, tenants, "time") for name in LARGER for tenants in (1, 4)),
    ("die", 2, "mps"),
    *((name, 4, "mps") for name in LARGER),
    *((name, 2, "time") for name in (SMALL, *LARGER)),
)
"""What is launched with how many tenants in which mode: first one of each kind, as time may not suffice for all."""


def run(given: Given) -> None:
    given.need_torch()
    if given.device == "cpu":
        on_processors(given)
        return
    alone: dict[str, float] = {}
    for what, tenants, mode in COURSE:
        # Named as its check is: the line of what time leaves out is the same one.
        with given.looking_at(f"{what} {mode}" if what in EXPECTED else f"{what} K={tenants} {mode}"):
            given.need_time(LAUNCH_S)
            if what in EXPECTED:
                deeds(given, what, mode)
            else:
                together(given, [what], tenants, mode, alone)


def on_processors(given: Given) -> None:
    """Show the same on slices of processors, in small."""
    with given.looking_at("K=2, slices of processors"):
        together(given, [SMALL], 2, "slices", {})
    with given.looking_at("kill -9, slices of processors"):
        deeds(given, "die", "slices")
    given.skip("modes of sharing", "They need a device, and torch sees none.")


def sharing(given: Given, mode: str, tenants: int) -> list[str]:
    """Return the runner's flags for so many tenants in a mode. Raises Skip where this machine has none such."""
    if mode == "slices":
        return ["--users", str(tenants)]
    if mode.startswith("mps"):
        given.need_nvidia()
        if shutil.which(MPS_CONTROL) is None:
            raise Skip(f"There is no {MPS_CONTROL} here.")
    return ["--users", str(tenants), "--share", mode, "--timeout", f"{HUNG_S + TURN_S * tenants:g}s"]


def together(
    given: Given,
    names: Sequence[str],
    tenants: int,
    mode: str,
    alone: dict[str, float],
    known: Mapping[str, Job] = JOBS,
) -> None:
    """Launch jobs with so many tenants on the device, and judge each; `alone` learns and lends their rates."""
    budget_s = SMALL_BUDGET_S if given.quick else BUDGET_S
    jobs = [job_entry(name, known[name], given) for name in names]
    flags = [*sharing(given, mode, tenants), "--budget", f"{budget_s}s"]
    folder = given.scratch / f"{mode.replace(':', '-')}-{tenants}-{names[0]}"
    records = finished(launched(folder, jobs, flags, given.left_s + 5))
    for name in names:
        own = [record for record in records if record["name"] == name]
        for record in own:
            keep_record(given.book, f"{name} K={tenants} {mode}", record)
        if tenants == 1 and own and (single := rate(own[0])):
            alone[name] = single
        row = shared_row(own, alone.get(name))
        given.row("shared", job=name, K=tenants, mode=mode, **row)
        cell, crowded = f"{name} K={tenants} {mode}", too_large(own, tenants)
        if crowded:
            given.skip(cell, crowded)
        else:
            given.check(cell, *judge(own, tenants, row, given.quick))


def shared_row(records: Sequence[dict[str, Any]], alone: float | None) -> dict[str, Any]:
    """Return a launch's rates, what its tenants keep (STP), the worst one's share, and how far they ran together."""
    rates = [value for record in records if (value := rate(record)) is not None]
    kept = [value / alone for value in rates] if alone else []
    meetings = [record["rendezvous"] for record in records if record.get("rendezvous")]
    return {
        "outcomes": ", ".join(sorted({record["outcome"] for record in records})),
        "rates": rates,
        "stp": sum(kept) if kept else None,
        "fairness": min(rates) / max(rates) if rates else None,
        "overlap": min((meeting["overlap"] for meeting in meetings), default=None),
        "findings": ", ".join(sorted({f["rule"] for record in records for f in record["findings"]})),
    }


def too_large(records: Sequence[dict[str, Any]], tenants: int) -> str:
    """Return that a job fits no part of this device, where that is why its tenants did not complete; "" otherwise."""
    lost = {record["outcome"]: record["message"] for record in records if record["outcome"] != "completed"}
    full = "device_out_of_memory"
    if tenants == 1 or full not in lost or lost.keys() - {full, "aborted"}:
        return ""
    return f"It does not fit its part of the device: {lost[full]}"


def judge(
    records: Sequence[dict[str, Any]], tenants: int, row: dict[str, Any], quick: bool = False
) -> tuple[bool, str]:
    """Return whether all tenants of a launch completed, validly and within reason, and what they keep."""
    lost = [record for record in records if record["outcome"] != "completed"]
    if len(records) != tenants or lost:
        why = f"{lost[0]['outcome']}: {lost[0]['message']}" if lost else "a record is missing"
        return False, f"{len(records) - len(lost)} of {tenants} tenants completed; {why}"
    # In small, on a machine that others use, tenants do not run together for long enough.
    if wrong := [] if quick else [sentence for record in records for sentence in errors(record)]:
        return False, wrong[0]
    if row["stp"] is not None and row["stp"] > ABOVE * tenants:
        return False, f"{tenants} tenants keep {row['stp']:.2f} times the rate of one: they cannot."
    kept = f"STP {row['stp']:.2f}, " if row["stp"] is not None else ""
    return True, f"{kept}fairness {row['fairness'] or 0:.2f}, overlap {row['overlap'] or 0:.3f}."


def deeds(given: Given, deed: str, mode: str) -> None:
    """Let one of two tenants do something, and see how it and its neighbour end."""
    words = ["--deed", deed, "--who", "0", "--mebibytes", "1024", "--report", "$OUTPUT_DIRECTORY", "--cuda"]
    words += [str(word) for pair in (PLENTY | {"--number": 200 if not given.quick else 20}).items() for word in pair]
    folder = given.scratch / f"{deed}-{mode.replace(':', '-')}"
    flags = sharing(given, mode, tenants=2)
    records = finished(launched(folder, [entry(deed, str(DEEDS), words)], flags, given.left_s + 5))
    for record in records:
        keep_record(given.book, f"{deed} {mode}", record)
        given.row(
            "deeds",
            deed=deed,
            mode=mode,
            tenant=record["tenant"],
            outcome=record["outcome"],
            message=record["message"][:200],
        )
    if len(records) < 2:
        raise Skip(f"There are {len(records)} records of two tenants.")
    outcomes = {record["tenant"]: record["outcome"] for record in records}
    given.check(f"{deed} {mode}", *judge_deed(deed, outcomes[0], outcomes[1]))


def judge_deed(deed: str, doer: str, neighbour: str) -> tuple[bool, str]:
    """Return whether the one that did it ended as it has to, and its neighbour went on."""
    return doer in EXPECTED[deed] and neighbour == "completed", f"It ended as {doer}, its neighbour as {neighbour}."
