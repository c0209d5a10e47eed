"""Records as OpenMetrics, and the dashboard that queries them."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from commands.calling import Capture, call, write
from cotenant.results.openmetrics import ENDED, GAUGES, KEY, LABELS
from report.making import BUSY, launch, lost, solo
from results.made import NOON

ROOT = Path(__file__).parents[2]


def samples(text: str) -> dict[tuple[str, str, str], float]:
    """Return the value of each series by gauge, job and tenant, as Prometheus' own parser reads them."""
    read: dict[tuple[str, str, str], float] = {}
    for family in text_string_to_metric_families(text):
        assert (family.type, bool(family.documentation)) == ("gauge", True)
        assert family.unit or not family.name.endswith(("_ratio", "_seconds", "_per_second"))
        for sample in family.samples:
            key = sample.name.removeprefix("cotenant_"), sample.labels["benchmark"], sample.labels["tenant"]
            assert key not in read, "a series has one sample"
            read[key] = sample.value
    return read


def exported(capsys: Capture, records: Path) -> dict[tuple[str, str, str], float]:
    path = records.with_name("rows.prom")
    assert call(capsys, "export", records, "--format", "openmetrics", "--out", path)[0] == 0
    return samples(path.read_text())


def test_the_newest_record_of_each_series_has_a_sample(tmp_path: Path, capsys: Capture) -> None:
    old, new = launch("vae", 0, mean_ms=1000), launch("vae", 1, mean_ms=500)
    records = write(tmp_path / "out", [*new, *old, *launch("wlm", 0, findings=(BUSY,)), *lost("ssd", 0)])
    read = exported(capsys, records)
    assert read["rate_items_per_second", "vae", "0"] == pytest.approx(new[0].statistics.median)
    assert (read["completed", "vae", "1"], read["completed", "ssd", "0"]) == (1, 0)
    assert ("rate_items_per_second", "ssd", "0") not in read, "what is not known has no sample"
    assert (read["warning_findings", "wlm", "0"], read["warning_findings", "vae", "0"]) == (1, 0)
    assert read[ENDED, "vae", "0"] == pytest.approx(datetime.fromisoformat(new[0].end_time).timestamp(), abs=0.001)


def test_a_failure_takes_the_place_of_an_older_success(tmp_path: Path, capsys: Capture) -> None:
    later = (NOON + timedelta(hours=1)).isoformat()
    failed = [replace(one, start_time=later) for one in lost("vae", 1)]
    read = exported(capsys, write(tmp_path / "out", [*launch("vae"), *failed]))
    assert (read["completed", "vae", "0"], read["completed", "vae", "1"]) == (0, 0)
    assert ("rate_items_per_second", "vae", "0") not in read


def test_users_of_an_older_launch_have_no_series(tmp_path: Path, capsys: Capture) -> None:
    four, two = launch("vae", 0, tenants=4), launch("vae", 1, tenants=2)
    alone = [*solo("vae", 0, tenants=2), *solo("vae", 1, tenants=2)[:1]]
    read = exported(capsys, write(tmp_path / "out", [*four, *two, *alone]))
    assert {(name, tenant) for gauge, name, tenant in read if gauge == "completed"} == {
        *(("vae", tenant) for tenant in "01"),
        *(("vae.solo", tenant) for tenant in "01"),
    }


def test_original_devices_without_tenants_are_separate_series(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "out").mkdir()
    rates = {"D0": 100.0, "D1": 101.0}
    for device, rate in rates.items():
        fields = {"name": "vae", "vcd": device, "uid": 0, "train_item": {"avg": rate}}
        (tmp_path / f"out/{device}.json").write_text(json.dumps(fields))
    read = exported(capsys, tmp_path / "out")
    assert {device: read["rate_items_per_second", "vae", device] for device in rates} == rates


def test_labels_are_escaped_and_observations_refused(tmp_path: Path, capsys: Capture) -> None:
    odd = 'a "b" \\c'
    records = write(tmp_path / "out", [replace(one, suite=odd) for one in launch("vae")])
    path = tmp_path / "rows.openmetrics"
    assert call(capsys, "export", records, "--out", path)[0] == 0
    assert samples(path.read_text())
    assert r'suite="a \"b\" \\c"' in path.read_text()
    status, _, errors = call(capsys, "export", records, "--out", path, "--observations")
    assert (status, "Leave out --observations." in errors) == (2, True)


def test_the_dashboard_asks_for_series_that_are_written() -> None:
    dashboard = json.loads((ROOT / "docs/grafana-dashboard.json").read_text())
    written = {f"cotenant_{name}" for name in (*(gauge.name for gauge in GAUGES), ENDED)}
    labels = {"benchmark" if name == "name" else name for name in LABELS}
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    asked += [variable["query"] for variable in dashboard["templating"]["list"] if variable["type"] == "query"]
    assert len(asked) > 8
    for expression in asked:
        assert set(re.findall(r"cotenant_\w+", expression)) <= written, expression
        assert set(re.findall(r"(\w+)=~", expression)) <= labels, expression
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    # Users are held against each other within a job, never those with slices against those without.
    held = re.findall(r"(?:min|max) by \(([^)]*)\) \(cotenant_rate", " ".join(asked))
    job = {"benchmark" if name == "name" else name for name in KEY} - {"tenant"}
    assert [{*words.split(", ")} for words in held] == [job, job]
