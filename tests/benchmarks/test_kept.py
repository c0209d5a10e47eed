"""What users keep by blocks and by whole launches, of invented records."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.conftest import Load


def record(tenant: int, rate: float | None, *, kept: float | None = None, solo: bool = False, uid: int = 0) -> Any:
    return {
        "name": "vae.solo" if solo else "vae",
        "run_id": uid,
        "tenant": tenant,
        "solo": solo,
        "kept": kept and {"value": kept},
        "statistics": rate and {"median": rate},
        "start_time": "2026-11-24T12:00:00+00:00",
        "end_time": f"2026-11-24T12:00:{10 + tenant}+00:00",
    }


def test_a_launch_keeps_the_geometric_mean_of_what_its_users_keep(load: Load) -> None:
    module = load("kept")
    blocks = [
        record(0, 1.0, kept=0.8),
        record(1, 1.0, kept=0.2),
        record(0, 1.0, kept=0.9, uid=1),
        record(1, 1.0, uid=1),
    ]
    assert module.kept_of(blocks, "blocks") == {"vae": {0: pytest.approx(0.4)}}
    whole = [record(0, 8.0), record(1, 4.0), record(0, 10.0, solo=True), record(1, 20.0, solo=True)]
    assert module.kept_of(whole, "whole") == {"vae": {0: pytest.approx(0.4)}}
    assert module.kept_of(whole[:-1], "whole") == {}
    # The launch together took 11 s, those alone 10 and 11.
    assert module.seconds_of(whole) == {"vae": 32.0}


def test_ways_differ_where_each_interval_excludes_the_other_value(load: Load) -> None:
    module = load("kept")
    near, far = [0.99, 1.0, 1.01], [0.89, 0.9, 0.91]
    assert module.row("vae", near, far, [50.0, 90.0]) == (
        "| vae | 1.000 | 0.975-1.025 | 0.010 | 50 | 0.900 | 0.875-0.925 | 0.011 | 90 | yes |"
    )
    wide = [0.8, 0.9, 1.0]
    assert module.row("vae", near, wide, [50.0, 90.0]).endswith(" no |")
    assert (
        module.row("vae", [], near[:1], [0.0, 90.0]) == "| vae | - | - | - | 0 | 0.990 | n too small: 1 | - | 90 | - |"
    )
