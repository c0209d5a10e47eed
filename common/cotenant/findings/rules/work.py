"""Compares the requested and credited work with the work that ran: precision, seeds, batches, updates, devices."""

from __future__ import annotations

from dataclasses import replace
from statistics import median

from cotenant.finding import Finding, error, info, warning
from cotenant.findings import record_rule
from cotenant.findings.rules.timing import audits_after, kept_observations
from cotenant.results.decoded import list_of, mapping_of, text_of
from cotenant.results.record import Record
from cotenant.suite.variables import value_behind
from cotenant.text import in_words, many, verb

PLAIN = "fp32"
USUAL_SKIPPED, MOST_SKIPPED = 0.01, 0.5
"""A scaler in its steady state doubles its scale every 2000 updates, and may lose the next one."""
LEAST_BATCH_NS = 1000
"""A loop that does nothing but ask for a batch takes about this long."""
MOST_RATE = 1e18
"""No computer multiplies this often in a second, and no item takes less than one multiplication."""
MOST_FASTER = 10
FLOPS_LIKE = 0.02
"""Counted operations may differ by this share from a closed form, which leaves out small layers."""
LATE = 1.1


@record_rule
def precision(record: Record) -> Finding | None:
    """The dtype of the heaviest products against the requested precision."""
    requested, dtype = record.arguments.get("precision"), record.observed.get("dtype")
    if dtype is None and isinstance(requested, str) and requested != PLAIN and record.statistics is not None:
        return warning(
            f"Asked for {requested}, but no product was seen in a step: nothing shows the precision it ran in.",
            "Let the benchmark report `observed.dtype`, or leave --precision out if it has no products.",
        )
    if requested is None or dtype is None or dtype == ("fp16" if requested == "half" else requested):
        return None
    return error(
        f"Asked for {requested}, but the heaviest products of a step ran in {dtype}.",
        "Check that the models are placed by run.place and that no step casts its input.",
    )


@record_rule
def products(record: Record) -> Finding | None:
    """Every product's dtype against the requested precision, if the heaviest ones' is right."""
    requested, seen = record.arguments.get("precision"), record.observed.get("products")
    wanted = "fp16" if requested == "half" else requested
    if not isinstance(seen, dict) or record.observed.get("dtype") != wanted:
        return None
    others = {dtype: names for dtype, found in seen.items() if dtype != wanted and (names := list_of(found))}
    if not others:
        return None
    ran = "; ".join(f"in {dtype}: {', '.join(map(str, names))}" for dtype, names in sorted(others.items()))
    # On a processor that is torch's choice, and no rate is near a peak there.
    severity = info if record.observed.get("device") == "cpu" else warning
    return severity(
        f"Asked for {requested}, but not all products of a step ran in it ({ran}).",
        "See which part of the step leaves autocast; compare with rates of the same mixture alone.",
    )


@record_rule
def flops_closed(record: Record) -> Finding | None:
    """The operations counted on a step against the closed form that its benchmark declares."""
    counted, closed = (record.observed.get(name) for name in ("flops_per_step", "flops_closed"))
    if not isinstance(counted, (int, float)) or not isinstance(closed, (int, float)) or closed <= 0:
        return None
    if abs(counted / closed - 1) <= FLOPS_LIKE:
        return None
    return warning(
        f"{counted:.4g} operations were counted on a step, and its closed form is {closed:.4g}: "
        f"{counted / closed:.3g} times as many.",
        "See what the step leaves out, pads or computes again, or correct the benchmark's `flops`.",
    )


@record_rule
def mfu_impossible(record: Record) -> Finding | None:
    """A rate that is impossible for the device: operations were credited that did not run."""
    if (excess := _above_peak(record)) is None or excess[1] <= 1:
        return None
    return error(
        excess[0],
        "Let every step do the whole work, and count only steps that ran; see that the device is synchronised.",
    )


@record_rule
def mfu_above_peak(record: Record) -> Finding | None:
    """A rate above the device's peak that its convolutions can explain: they may take fewer products than counted."""
    if (excess := _above_peak(record)) is None or excess[1] > 1:
        return None
    sentence, least = excess
    return warning(
        f"{sentence} Its convolutions may need only a quarter of the counted products: {least:.2f} then.",
        "None is needed if a profile shows convolutions by Winograd's algorithm or FFT; else see what did not run.",
    )


def _above_peak(record: Record) -> tuple[str, float] | None:
    """Return a sentence about a rate above its device's peak, and the least share of the peak that it can be."""
    compute = record.meters.get("compute") or {}
    if (mfu := compute.get("mfu")) is None or mfu <= 1:
        return None
    sentence = (
        f"This rate takes {compute['tflops']:.1f} TFLOP/s, {mfu:.2f} times the peak of {record.gpu} in "
        f"{record.observed['dtype']} ({compute['peak_tflops']:g} TFLOP/s)."
    )
    return sentence, compute.get("mfu_least", mfu)


@record_rule
def credited(record: Record) -> Finding | None:
    """Batches that did other work than the warm-up's, as an audit step shows, or fewer updates of weights."""
    differences = list_of(mapping_of(record.observed.get("audit")).get("differences"))
    if record.statistics is not None and differences:
        return error(
            f"A step between observations did other work than the warm-up: {'; '.join(map(text_of, differences))}.",
            "Let every step do the same work, or count in `items` what it did.",
        )
    expected, ran = (record.observed.get(name) for name in ("updates_credited", "updates"))
    if record.statistics is None or not isinstance(expected, int) or not isinstance(ran, int):
        return None
    if not 0 <= ran < expected:
        return None
    return error(
        f"{expected} updates of weights were credited, as many per batch as in the warm-up, and {ran} ran.",
        "Let every step do the same work, or count in `items` what it did.",
        value=ran / expected,
        effect=1 - ran / expected,
    )


@record_rule
def uneven_work(record: Record) -> Finding | None:
    """Steps that differ in their work without saying so: the operations of one say nothing about the others."""
    audit = mapping_of(record.observed.get("audit"))
    if record.statistics is None or audit.get("even") is not False or audit.get("differences") or audit.get("uneven"):
        return None
    return info(
        "Some audited steps did other work than the warm-up, so no operations are credited.",
        "Set `run.uneven = True` if steps differ.",
    )


@record_rule
def unaudited(record: Record) -> Finding | None:
    """A program with its own loop instead of cotenant.bench's: its clock, items and steps are unverified."""
    if record.statistics is None or record.audited:
        return None
    return info(
        "This program times itself: no audit shows that its steps did the work that it counts.",
        "Write it on cotenant.bench (./run.sh new), or quote its number as its author's word.",
    )


@record_rule
def other_steppers(record: Record) -> Finding | None:
    """A program of `exec` with one counted process, while others train as well."""
    others = record.observed.get("other_steppers")
    if not isinstance(others, int) or others < 1:
        return None
    return warning(
        f"{many(others, 'further process')} of this program stepped an optimizer: their steps are not counted.",
        "Let one process train, or start ranks by torchrun, whose rank 0 counts.",
    )


@record_rule
def skipped_updates(record: Record) -> Finding | None:
    """Updates that a gradient scaler skipped: the steps took their time, and trained nothing."""
    skipped, total = (record.observed.get(name) for name in ("updates_skipped", "updates_scaled"))
    if record.statistics is None or not isinstance(skipped, int) or not isinstance(total, int) or total <= 0:
        return None
    if skipped <= USUAL_SKIPPED * total:
        return None
    severity = error if skipped > MOST_SKIPPED * total else warning
    return severity(
        f"{skipped} of {total} updates since the warm-up changed no weight: their fp16 gradients were not finite.",
        "Let the scale settle with more observations, or use --precision bf16.",
    )


@record_rule
def batch_rows(record: Record) -> Finding | None:
    """The counted items against the requested ones: `number` batches of `batch_size` rows in every observation."""
    number, batch_size = record.arguments.get("number"), record.arguments.get("batch_size")
    if record.observed.get("item_is_row") is not True or not isinstance(number, int) or not isinstance(batch_size, int):
        return None
    observations, rows = kept_observations(record), number * batch_size
    # After a full first batch the last one of each epoch may be partial.
    least = 1 if record.observed.get("rows") == batch_size else rows
    others = [row for row in observations if not row.items or not least <= row.items <= rows]
    if not others:
        return None
    return error(
        f"{number} batches of {batch_size} rows are {rows}, and an observation counts "
        f"{others[0].items:g} ({len(others)} of {len(observations)} are like this).",
        "Let every batch hold --batch-size rows, or define `items` if an item is something else.",
    )


@record_rule
def pace(record: Record) -> Finding | None:
    """A pace at which no work can have been done: batches that were credited and did not run."""
    number, observations = record.arguments.get("number"), kept_observations(record)
    if record.given is not None:
        number = record.given.number
    if not observations or not isinstance(number, int) or number < 1:
        return None
    batch_ns = median(row.took_ns for row in observations) / number
    shortest_ns = min(row.took_ns for row in observations) / number
    warm_up_ns = min((record.rendezvous.warm_up_ns if record.rendezvous else []), default=0)
    # The most tenants that may have warmed up on its processors at once: turns can overlap.
    residents = max(record.sharers, (record.blocks.residents if record.blocks else None) or 1)
    severity = error if shortest_ns < LEAST_BATCH_NS else warning
    if shortest_ns < LEAST_BATCH_NS:
        sentence = f"A batch took {shortest_ns:.3g} ns: that is the cost of a loop that does nothing."
    # The warm-up may have had an equal share of shared processors, and this observation all of them.
    elif warm_up_ns > MOST_FASTER * residents * batch_ns:
        batch_ms, times = batch_ns / 1e6, warm_up_ns / batch_ns
        sentence = f"A batch took {batch_ms:.3g} ms, and the fastest step of the warm-up {times:.0f} times as long."
    else:
        return None
    return severity(
        sentence,
        "See that every credited batch is run, and that the device is synchronised before the clock is read.",
    )


@record_rule
def impossible_rate(record: Record) -> Finding | None:
    """A rate that no computer has."""
    rates = [row.items * 1e9 / row.took_ns for row in kept_observations(record) if row.items]
    if max(rates, default=0) <= MOST_RATE:
        return None
    return error(
        f"{max(rates):.3g} items in a second are more than any computer multiplies.",
        "Count in `items` what a step trains on.",
    )


@record_rule
def seed(record: Record) -> Finding | None:
    """The seed on the tenant's command line, against the seed that it reports."""
    requested, seen = _flag(record, "--seed"), record.arguments.get("seed")
    if not isinstance(seen, int) or not requested.isdecimal() or int(requested) == seen:
        return None
    return warning(
        f"Asked for seed {requested}, but it ran with seed {seen}.",
        "Let the benchmark take --seed: every user and every repetition has its own.",
    )


@record_rule
def devices_unused(record: Record) -> Finding | None:
    """A tenant that trained on fewer devices than its slice has, though nothing asked for fewer."""
    there, used = len(record.isolation.planned.get("accelerators", [])), record.devices
    # A program that ran on the processor has a finding of its own, or was asked to.
    if used >= there or record.observed.get("device") == "cpu" or _flag(record, "--devices") == str(used):
        return None
    return warning(
        f"{there} devices, and {in_words(used)} {verb(used, 'was', 'were')} used.",
        "Leave --users out, and start a rank per device in jobs of the group all (run_distributed.sh); to use fewer of "
        "them, hide the others (CUDA_VISIBLE_DEVICES).",
    )


def _flag(record: Record, flag: str) -> str:
    """Return the last value of a flag among the command's words, even if a shell has them as one."""
    return value_behind(" ".join(record.command).split(), flag)


@record_rule
def no_loss(record: Record) -> Finding | None:
    """A benchmark without a loss: its NaN check had nothing to look at."""
    if record.statistics is None or record.losses_checked:
        return None
    return info("This benchmark returns no loss, so none was checked for NaN.")


@record_rule
def budget(record: Record) -> Finding | None:
    """A budget of time gives a launch less work than requested, and cannot always be kept."""
    budget_s, requested, given = record.isolation.policies.get("budget_s"), record.asked, record.given
    if not isinstance(budget_s, float) or requested is None or given is None:
        return None
    # A quick baseline is short on request, and is labelled so.
    if not record.completed or not record.observations or record.baseline == "quick":
        return None
    if record.blocks is not None:
        return info(f"A budget of {budget_s:g} s has room for {many(record.blocks.rounds, 'round')} of blocks.")
    if record.mix:
        # A mix ends all at once, whatever its amounts.
        given = replace(given, repeat=len(record.observations))
    took_ns = record.observations[-1].end_ns - record.observations[0].start_ns - sum(audits_after(record).values())
    took_s, made = took_ns / 1e9, len(record.observations)
    cut = "nothing"
    if given != requested:
        cut = (
            f"{many(requested.repeat, 'observation')} of {many(requested.number, 'batch')} to {given.repeat} of "
            f"{given.number}: {given.batches} of {many(requested.batches, 'batch')}"
        )
    if took_s > LATE * budget_s:
        if made == given.repeat:
            sentence = f"A budget of {budget_s:g} s cut {cut}. They took {took_s:.1f} s."
        else:
            after = f"{many(made, 'observation')} and {took_s:.1f} s"
            sentence = f"A budget of {budget_s:g} s cut {cut}. They were ended after {after}."
        # Only a note: the budget was requested.
        return info(sentence, "Give a larger --budget, or a smaller batch.")
    if given.batches >= requested.batches:
        return None
    return info(f"A budget of {budget_s:g} s cut {cut}.")


@record_rule
def until_interval(record: Record) -> Finding | None:
    """Observations that end when an interval is narrow enough: such an interval covers less than it says."""
    share, given = record.isolation.policies.get("until_interval"), record.given
    if not isinstance(share, float) or given is None or not record.completed or not record.observations:
        return None
    flag, made = f"--until-interval {100 * share:g}%", len(record.observations)
    early = not record.rank_observations and made < given.repeat
    if record.blocks is not None:
        early = not record.blocks.complete
    if record.rank_observations:
        sentence = f"{flag} has no effect here: ranks that stopped at different times would hang."
    elif not early:
        sentence = f"{flag} did not end its observations before the last of {made}."
    elif record.blocks is not None:
        sentence = f"{flag} ended the blocks before the last round: such an interval covers less than it says."
    else:
        by = f"{flag} or --budget" if "budget_s" in record.isolation.policies else flag
        by += " or the slowest of its mix" if record.mix else ""
        sentence = f"{by} ended them after {made} of {given.repeat}: such an interval covers less than it says."
    severity = warning if early else info
    return severity(sentence, "Run without it if an interval is to be published." if early else "")
