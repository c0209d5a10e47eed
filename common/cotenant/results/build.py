"""Builds a Record from the runner's facts and the tenant's part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from cotenant.confidential import Conceal, arguments_without, words_without
from cotenant.results.devices import gpu_of, trained
from cotenant.results.identity import unique_id
from cotenant.results.rates import derived_meters, kept_by_blocks, numbers_of
from cotenant.results.record import Attested, Observed, Record, cell_of, counts, rated
from cotenant.results.told import TenantPart
from cotenant.stats.tenants import Span

LOSSES_KEPT = 100


def observed_by_ranks(
    of_ranks: Mapping[int, Sequence[Observed]],
) -> tuple[list[Observed], dict[str, list[Observed]]]:
    """Return a tenant's observations, and for several ranks also each rank's observations by its number.

    `of_ranks` has each rank's observations by its number. The tenant's observations have the lowest rank's times and
    the items of all ranks; they stop at the last observation that every rank made.
    """
    ranks = [[*of_ranks[number]] for number in sorted(of_ranks)]
    if len(ranks) == 1:
        return ranks[0], {}
    rows = zip(*ranks, strict=False)
    summed = [msgspec.structs.replace(row[0], items=sum(rank.items or 0 for rank in row)) for row in rows]
    return summed, {str(number): rows for number, rows in zip(sorted(of_ranks), ranks, strict=True)}


def load_of(observations: Sequence[Observed], part: TenantPart, stop_ns: int) -> Span:
    """Return the begin and end of a tenant's load; an end reported after STOP (0 without one) becomes STOP."""
    if not observations:
        return (0, 0)
    end_ns = min(part.load_end_ns, stop_ns) if stop_ns else part.load_end_ns
    return observations[0].start_ns, max(observations[-1].end_ns, end_ns)


def build_record(facts: Attested, part: TenantPart, conceal: Conceal) -> Record:
    """Return the record before any rule is applied. A tenant that did not complete has observations, but no rates.

    `conceal` turns a confidential word or argument into a value that a record may hold.
    """
    completed = facts.outcome == "completed"
    train, train_item, statistics = numbers_of(rated(facts.observations, facts.skip) if completed else [])
    (gpu, foreign), (vcd, devices) = gpu_of(facts, part), trained(facts, part)
    given = facts.given
    if given is not None and completed:
        # The observations may have ended early.
        given = replace(given, repeat=len(facts.observations), skip=facts.skip)
    flags = counts(facts.observations, facts.skip)
    attested = msgspec.structs.asdict(facts) | {
        "command": words_without(facts.command, conceal),
        "run_words": words_without(facts.run_words, conceal),
        "vcd": vcd,
        "devices": devices,
        "skip": max(0, facts.skip),
        "observations": [
            made if made.kept is not None else msgspec.structs.replace(made, kept=flag)
            for made, flag in zip(facts.observations, flags, strict=True)
        ],
        "machine": facts.machine | {"torch": part.torch} | _callers_software(facts.machine, part.torch),
        "meters": facts.meters | {"device_memory": part.device_memory},
        "findings": [*facts.findings, *part.findings, *foreign],
    }
    record = Record(
        **attested,
        arguments=arguments_without(part.given_arguments(given), conceal),
        jr_id=facts.tenant,
        gpu=gpu,
        version=part.version,
        unique_id=unique_id(cell_of(facts.name, facts.solo, facts.mix), part.version, part.arguments),
        completed=completed,
        unit=part.item,
        train=train,
        train_item=train_item,
        batch_loss=part.batch_loss[-LOSSES_KEPT:],
        epoch_loss=part.epoch_loss,
        losses_checked=part.losses_checked,
        losses_non_finite=part.losses_non_finite,
        metrics=part.metrics,
        ignored=part.ignored,
        statistics=statistics,
        observed=part.observed,
        kept=kept_by_blocks(facts.observations) if completed else None,
    )
    return msgspec.structs.replace(record, meters=record.meters | derived_meters(record))


def _callers_software(machine: Mapping[str, Any], torch: Mapping[str, Any]) -> dict[str, Any]:
    """Return `software` without the runner's versions, for a program in the caller's interpreter."""
    if "interpreter" not in torch:
        return {}
    packages = {"torch": torch["version"]} if "version" in torch else {}
    return {"software": {**machine.get("software", {}), "python": torch.get("python"), "packages": packages}}
