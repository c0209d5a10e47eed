"""Records damaged in any place give every view, or a sentence: never a traceback, never a number that is none."""

from __future__ import annotations

import contextlib
import io
import json
import random
from typing import Any

import msgspec
import pytest
from rich.console import Console

from cotenant.errors import CotenantError
from cotenant.report import scaling as scaled
from cotenant.report import tables
from cotenant.report.jobs import jobs_grid
from cotenant.report.page import page
from cotenant.report.renderers import FILES, show
from cotenant.results.record import encode
from report.making import launch, lost, power, scaling, summary_of

ODD: list[Any] = [None, True, -1, 0, 1, 1e308, 5e-324, 2**62, 2**70, 10**400, float("nan"), float("inf")]
ODD += ["", "\ud800", "\x00<b>", "$x$", [], {}, [1, 2], {"a": 1}, "0,1,2", "1" * 5000, [0, 1]]


def damage(value: Any, chance: random.Random) -> None:
    """Replace something in a tree of JSON values."""
    while isinstance(value, (dict, list)) and value:
        key = chance.choice(list(value) if isinstance(value, dict) else range(len(value)))
        if chance.random() < 0.45:
            value[key] = chance.choice(ODD)
            return
        value = value[key]


def views(trees: list[dict[str, Any]]) -> None:
    summary = summary_of(trees)
    for width in (40, 200):
        show([jobs_grid(summary)], Console(file=io.StringIO(), width=width))
    for write in FILES.values():
        write(jobs_grid(summary)).encode()
    for lines in tables.tables(summary.jobs, []).values():
        FILES["csv"](tables.table_grid(lines, "throughput")).encode()
    found: scaled.Curves = {}
    with contextlib.suppress(CotenantError):
        found = scaled.curves(summary.jobs)
        scaled.as_text(found)
        FILES["csv"](scaled.scaling_grid(found))
    page("title", summary, found).encode(errors="replace")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100))
def test_any_damage_is_borne(seed: int) -> None:
    chance = random.Random(seed)
    records = [*launch("vae", 0, meters=power([300, 200])), *launch("vae", 1), *lost("vae", 2), scaling(1), scaling(2)]
    trees = [json.loads(msgspec.json.encode(msgspec.json.decode(encode(one)))) for one in records]
    for tree in trees:
        for _ in range(chance.randrange(7)):
            damage(tree, chance)
    views(trees)
