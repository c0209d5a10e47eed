"""Which form of a job is fastest here: precisions, memory formats, graphs, compiled; and what is compiled too late."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from device.book import Skip
from device.jobs import JOBS, Job
from device.part import Given
from device.task import How, LateError, errors, flags_of, in_child, measured_here, preload, rate
from device.tasks import SKIPPED_OUTCOMES, keep_record

FORMED: dict[str, tuple[str, ...]] = {"dcgan": (), "convnet": ("--arch", "resnet50"), "ssd": (), "gpt": ()}
"""The jobs, and what is other than in the part `tasks`. The first, the soonest compiled, is so before the others."""
SMALL_JOB = "convnet"
FORMS: dict[str, tuple[str, ...]] = {
    "fp32": (),
    "tf32": ("--precision", "tf32"),
    "bf16": ("--precision", "bf16"),
    "tf32 contiguous": ("--precision", "tf32", "--no-channels-last"),
    "bf16 contiguous": ("--precision", "bf16", "--no-channels-last"),
    "fp32 channels_last": ("--channels-last",),
    "bf16 graph": ("--precision", "bf16", "--graph"),
}
"""channels_last is what convolutions are in tf32 and bf16 unless told otherwise."""
COMPILED = {"bf16 compiled": ("--precision", "bf16", "--compile")}
"""In children of their own: they take half a minute each."""
SMALL = {"fp32": (), "fp32 channels_last": ("--channels-last",)}
BUDGET_S, SMALL_BUDGET_S = 0.6, 0.2
FORM_S, COMPILE_S, BEYOND_S = 2.0, 25.0, 8.0
"""What a form takes, as far as one knows before, and by how much the last one may overrun."""


def run(given: Given) -> None:
    given.need_torch()
    preload()
    if given.quick:
        formed(given, SMALL_JOB, SMALL)
        given.skip("compiled", "--quick compiles nothing.")
        return
    first, *others = FORMED
    formed(given, first, FORMS)
    compiled(given, first)
    for name in others:
        formed(given, name, FORMS)
    for name in others:
        compiled(given, name)


def formed(given: Given, name: str, forms: dict[str, tuple[str, ...]]) -> None:
    with given.looking_at(name):
        given.need_time(3 * FORM_S)
        measure(given, name, forms)
        fastest(given, name)


def compiled(given: Given, name: str) -> None:
    with given.looking_at(f"{name} compiled"):
        given.need_time(COMPILE_S)
        try:
            measure(given, name, COMPILED)
        except LateError as error:
            raise Skip("No time was left for its end.") from error
        late(given, name)


def measure(given: Given, name: str, forms: dict[str, tuple[str, ...]]) -> None:
    """Measure forms of a job one after the other in one child, which keeps each as soon as it is there."""
    job = JOBS[name]
    how = How.of(given, BUDGET_S, SMALL_BUDGET_S, math.inf, beyond_s=BEYOND_S)

    def work() -> bool:
        for form, flags in forms.items():
            if given.left_s < FORM_S:
                given.row("forms", job=name, form=form, outcome="no time was left")
                continue
            row = one_form(given, job, name, flags, how)
            given.row("forms", job=name, form=form, **row)
            forget()
        return True

    in_child(work, how.limit_s, given.scratch / "task.log")


def one_form(given: Given, job: Job, name: str, flags: Sequence[str], how: How) -> dict[str, Any]:
    if lacking := [flag for flag in flags if flag.startswith("--") and flag not in flags_of(job.main)]:
        return {"outcome": f"the task has no {lacking[0]} yet"}
    sizes = [*job.words(given), *([] if given.quick else FORMED[name])]
    record = measured_here(job.main, [*sizes, *flags], how)
    if record is None:
        return {"outcome": "it left no record", "errors": "It left no record: see log.txt."}
    keep_record(given.book, name, record)
    compute = (record.get("meters") or {}).get("compute") or {}
    compilations = record["compilations"]
    return {
        "outcome": record["outcome"] if record["outcome"] == "completed" else record["message"][:150],
        "rate": rate(record),
        "dtype": (record.get("observed") or {}).get("dtype"),
        "mfu": compute.get("mfu"),
        "compiled_in_time": compilations[1] - compilations[0] if len(compilations) == 2 else None,
        "errors": "; ".join(errors(record)) or broken(record),
    }


def broken(record: dict[str, Any]) -> str:
    """Return how a form ended that was started and did not complete, "" where it did or cannot be had here."""
    if record["outcome"] in ("completed", *SKIPPED_OUTCOMES):
        return ""
    return f"{record['outcome']}: {record['message'][:300]}"


def forget() -> None:
    """Give back what a form held, so that the next one begins as the first did."""
    import gc

    import torch

    gc.enable()
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def fastest(given: Given, name: str) -> None:
    """Judge a job's forms: each ran or is not to be had, and one is the fastest."""
    rows = [row for row in given.book.rows(given.part, "forms") if row["job"] == name]
    given.check(f"{name} forms", *judge(rows))


def judge(rows: Sequence[dict[str, Any]]) -> tuple[bool, str]:
    """Return whether a job's forms ran without an error, and which is fastest by how much."""
    rates = {row["form"]: row["rate"] for row in rows if row.get("rate")}
    if wrong := [f"{row['form']}: {row['errors']}" for row in rows if row.get("errors")]:
        return False, wrong[0]
    if not rates:
        return False, f"No form has a rate: {rows[0]['outcome'] if rows else 'none ran'}."
    best, plain = max(rates, key=lambda form: rates[form]), next(iter(rates))
    without = [row["form"] for row in rows if row["form"] not in rates]
    less = f"; without a rate: {', '.join(without)}" if without else ""
    return True, f"{best} is fastest, {rates[best] / rates[plain]:.2f} times {plain}{less}."


def late(given: Given, name: str) -> None:
    """Judge whether anything was compiled while the clock ran."""
    rows = [row for row in given.book.rows(given.part, "forms") if row["job"] == name and row["form"] in COMPILED]
    counts = [row.get("compiled_in_time") for row in rows]
    if None in counts or not counts:
        given.check(f"{name} compiled", False, rows[0]["outcome"] if rows else "It did not run.")
        return
    given.check(f"{name} compiled", not any(counts), f"{sum(counts)} graphs were compiled inside observations.")
