"""Whole views of records as other programs read them, and as text where tests/report has no golden file of it.

A golden document is in the form of `pprint`, in which a list of numbers is one line.
"""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from pprint import pformat

import pytest

from commands.calling import write
from cotenant.cli import main
from cotenant.results.record import Record
from golden import check_golden
from report.making import BUSY, UNSLICED, launch, lost, scaling, solo
from results.made import NOON

GOLDEN = Path(__file__).with_name("golden")
TARGETS = """job,target,perf_target,sd_target
vae,7500,0.5,0.05
ssd,9000,0.9,0.01
dcgan,7000,0.5,0.05
wlm,225,0.5,0.05
"""


def suite() -> list[Record]:
    """Five launches of two jobs, alone, together and without slices; scaling over 1 to 4 devices; a loss, a finding."""
    records: list[Record] = []
    for uid in range(5):
        records += launch("vae", uid, tenants=1, findings=(BUSY,) if uid == 1 else ())
        records += solo("vae", uid, tenants=1)
        records += launch("vae", uid, tenants=1, mean_ms=700, place=UNSLICED)
        records += launch("ssd", uid, mean_ms=400)
        records += [scaling(k, uid) for k in (1, 2, 4)]
    return [*records, *lost("ssd", 5)]


def side(day: int, vae_ms: float, dcgan_ms: float) -> list[Record]:
    """Five launches of three jobs, and a sixth of ssd that lost a tenant."""
    began = NOON + timedelta(days=day)
    records = [
        one
        for uid in range(5)
        for name, mean_ms in (("vae", vae_ms), ("ssd", 400.0), ("dcgan", dcgan_ms))
        for one in launch(name, uid, mean_ms=mean_ms, started=began + timedelta(minutes=uid))
    ]
    return [*records, *lost("ssd", 5)]


def hosts() -> list[Record]:
    """Four hosts of eight devices: one has seven of them, and one is a tenth slower."""
    records = []
    for host, devices, slower in (("n1", 8, 1.0), ("n2", 7, 1.0), ("n3", 8, 1.1), ("n4", 8, 1.0)):
        accelerators = [{"uuid": f"GPU-{at}", "name": "Some GPU"} for at in range(devices)]
        machine = {"model_name": "Some Processor", "accelerators": accelerators, "processors": {"usable": "0-15"}}
        for at, name in enumerate(("vae", "ssd", "dcgan")):
            mean_ms = 500 * slower * (1 + 0.001 * ((3 * at + devices) % 4))
            records += launch(name, mean_ms=mean_ms, place={"hostname": host, "machine": machine})
    return records


PLACES = {
    "hosts": hosts(),
    "output": suite(),
    "before": side(day=1, vae_ms=500, dcgan_ms=600),
    "after": side(day=2, vae_ms=550, dcgan_ms=480),
}


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("views")
    for name, of in PLACES.items():
        write(top / name, of)
    (top / "mine.csv").write_text(TARGETS)
    return top


VIEWS = {
    "report.csv": "report output --format csv",
    "report-json.txt": "report output --job vae --format json",
    "throughput.csv": "report output --job vae --job ssd --table throughput --precision fp32",
    "batch-size.csv": "report output --job vae --job ssd --table batch-size --precision fp32",
    "scaling.csv": "report output --table scaling --format csv",
    "scaling-json.txt": "report output --table scaling --format json",
    "interference.csv": "report output --table interference --format csv",
    "interference-json.txt": "report output --table interference --format json",
    "mlbench.txt": "mlbench-report --reports before --gpu-model mine.csv --price 1000",
    "mlbench-classic.txt": "mlbench-report --reports before --gpu-model mine.csv --classic",
    "hosts.txt": "report hosts --table hosts",
    "hosts.csv": "report hosts --table hosts --format csv",
    "compare.txt": "compare before after",
    "compare-json.txt": "compare before after --format json",
    "compare.junit": "compare before after --format junit",
}


@pytest.mark.parametrize("name", VIEWS)
def test_view(name: str, places: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(places)
    assert main(VIEWS[name].split()) == 0
    said = capsys.readouterr().out
    if name.endswith("-json.txt"):
        said = pformat(json.loads(said), width=120, compact=True, sort_dicts=False) + "\n"
    check_golden(GOLDEN / f"view-{name}", said)
