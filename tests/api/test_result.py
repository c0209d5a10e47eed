"""Records from Python: the same numbers and sentences as from the commands, typed and frozen."""

from __future__ import annotations

import builtins
import csv
import io
import json
import re
from pathlib import Path

import pytest

import cotenant
from api.sample import make_sample
from commands.calling import Capture, call, refusal, write
from cotenant.api.tables import MAKERS
from cotenant.commands.report import OF_SYSTEMS, TABLES
from cotenant.report.comparison import differences_allowed
from cotenant.report.renderers import drawn
from cotenant.results.columns import schema
from report.making import lost, solo
from workplace import beside, make_workplace


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_sample(tmp_path_factory.mktemp("sample"))


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> cotenant.Result:
    """Load records that give most tables a row."""
    return cotenant.load(make_workplace(tmp_path_factory.mktemp("place")))


def test_the_answer_is_that_of_the_command(sample: Path, capsys: Capture) -> None:
    output = sample / "output"
    result = cotenant.load(output)
    assert call(capsys, "report", output)[1].rstrip().endswith(str(result))
    assert result.kept is not None
    assert result.kept.interval is not None
    low, high = result.kept.interval
    assert f"Each user keeps {100 * result.kept.value:.0f} % ({100 * low:.0f} to {100 * high:.0f} %)" in str(result)
    assert 0.7 < low < result.kept.value < high < 0.77
    document = json.loads(call(capsys, "report", output, "--json")[1])
    rows = {(row["job"], row["tenant"]): row for row in document["rows"]}
    assert [job.name for job in result.jobs] == [name for name, tenant in rows if tenant is None] == ["vae", "wlm"]
    for job in result.jobs:
        shown = rows[job.name, None]
        assert (job.verdict, job.rate_items_s, job.unit) == (shown["verdict"], shown["rate"], shown["unit"])
        assert job.kept is not None
        assert job.kept.value == shown["users_kept"] == pytest.approx(shown["kept"], rel=1e-3)
        for tenant in job.tenants:
            assert tenant.kept is not None
            assert tenant.kept.value == rows[job.name, tenant.tenant]["kept"]
            assert tenant.rate_items_s == rows[job.name, tenant.tenant]["rate"]
    found = document["parts"]["findings"]["rows"]
    assert [finding.sentence for finding in result.findings] == [each["sentence"] for each in found]


def test_a_verdict_is_that_of_the_worst_job(sample: Path, tmp_path: Path) -> None:
    output = sample / "output"
    assert cotenant.load(output, name="vae").verdict == "clean"
    assert cotenant.load(output).verdict == "suspect"
    failed = cotenant.load(write(tmp_path, lost("dcgan", 0)), output)
    assert failed.verdict == "INVALID"
    assert ("dcgan", "out_of_memory") in [(loss.job, loss.outcome) for loss in failed.losses]
    assert next(job for job in failed.jobs if job.name == "dcgan").rate_items_s is None


def test_a_table_has_the_text_and_the_cells_of_the_command(workplace: cotenant.Result, capsys: Capture) -> None:
    table = workplace.table()
    assert str(table) == call(capsys, "report", *workplace.places)[1]
    read = list(csv.DictReader(io.StringIO(call(capsys, "report", *workplace.places, "--format", "csv")[1])))
    frame = table.to_polars()
    assert frame.columns == list(read[0])
    assert [[str("" if value is None else value) for value in row] for row in frame.rows()] == [
        list(row.values()) for row in read
    ]
    assert table._repr_html_().count("<tr>") > sum(len(group.lines) for group in drawn(table.view))


@pytest.mark.parametrize("name", ["jobs", "kept", "interference", "mix", "pairs", "share", "pressure"])
def test_a_table_is_that_of_the_command(name: str, workplace: cotenant.Result, capsys: Capture) -> None:
    words = () if name == "jobs" else ("--table", name)
    frame = workplace.table(name).to_polars()
    document = json.loads(call(capsys, "report", *workplace.places, *words, "--format", "json")[1])
    assert (document["schema"], document["view"]) == ("cotenant-view-1", name)
    assert list(document["columns"]) == frame.columns
    assert all(document["columns"].values()), "every field has a meaning"
    assert document["rows"] == frame.to_dicts()


def test_every_table_on_what_neighbours_cost_has_a_name() -> None:
    assert {*MAKERS} == {"jobs", *TABLES}
    assert not {*MAKERS} & {*OF_SYSTEMS}


def test_an_empty_table_says_which_command_measures_it(sample: Path) -> None:
    result = cotenant.load(sample / "output")
    for name, sentence in {
        "mix": "No launch ran different jobs. ./run.sh --mix",
        "duet": "No launch there was a duet. ./run.sh --duet",
        "pressure": "./run.sh --name JOB --pressure dram measures one",
        "mixes": "There is no table 'mixes'. There are jobs, hosts, kept, interference, mix, ",
    }.items():
        assert sentence in refusal(result.table, name)


def test_rows_are_those_of_an_export(sample: Path, tmp_path: Path, capsys: Capture) -> None:
    result = cotenant.load(sample / "output", name="vae")
    frame = result.to_polars()
    assert (frame.height, frame.columns) == (20, list(schema()))
    assert call(capsys, "export", sample / "output", "--name", "vae", "--out", tmp_path / "rows.parquet")[0] == 0
    again = cotenant.load(tmp_path / "rows.parquet")
    assert again.to_polars().equals(frame)
    assert any("rows.parquet: observations, " in note for note in again.notes)


def test_files_that_are_no_records_are_notes_and_told(sample: Path, tmp_path: Path) -> None:
    (tmp_path / "torn.json").write_text("{")
    told: list[str] = []
    result = cotenant.load(tmp_path, sample / "output", tell=told.append)
    assert told == list(result.notes)
    assert "torn.json: it is not JSON, or cut off" in told[0]
    for places, name, sentence in (
        ((tmp_path,), "", "There is no record in"),
        ((sample / "output",), "vea", "There is no job 'vea' there. Did you mean 'vae'?"),
        ((tmp_path / "none",), "", "does not exist."),
    ):
        assert sentence in refusal(cotenant.load, *places, name=name)


def test_a_notebook_shows_the_sentence_and_the_chart(sample: Path, tmp_path: Path) -> None:
    result = cotenant.load(sample / "output")
    shown = result._repr_html_()
    assert f"<p>{result}</p>" in shown
    assert shown.count("<svg") == 1
    assert ">wlm</text>" in shown
    assert "hollow: suspect" in shown
    mixed = cotenant.load(write(tmp_path, [*beside("vae", "convnet"), *solo("vae"), *solo("convnet")]))
    assert "each user&#x27;s rate over what it has alone</b><svg" in mixed._repr_html_()
    assert mixed.kept is None
    assert {job.mix for job in mixed.jobs} == {"vae+convnet"}


def test_a_comparison_is_that_of_the_command(sample: Path, capsys: Capture) -> None:
    a, b = sample / "A", sample / "B"
    compared = cotenant.compare(a, b)
    document = json.loads(call(capsys, "compare", a, b, "--json")[1])
    assert (compared.lines[0].verdict.value, [compared.apart]) == (document["rows"][0]["verdict"], document["notes"])
    assert cotenant.compare(cotenant.load(a), cotenant.load(b)) == compared
    assert cotenant.compare(a, b, margin=0.1).lines[0].verdict == cotenant.Verdict.SAME
    assert cotenant.compare(a, b, noise=a).lines[0].comparison == compared.lines[0].comparison
    assert "SLOWER" in compared._repr_html_()


def test_a_job_that_b_should_have_run_is_lost(sample: Path, tmp_path: Path) -> None:
    whole = write(tmp_path / "whole", [])
    for path in (*(sample / "A").glob("*.json"), *(sample / "output").glob("*.wlm.R*.json")):
        (whole / path.name).write_bytes(path.read_bytes())
    b = write(tmp_path / "B", [])
    for path in (sample / "B").glob("*.json"):
        (b / path.name).write_bytes(path.read_bytes())
    (b / "cpu.R0.resolved").write_text(json.dumps([{"label": "vae"}, {"label": "wlm"}]))
    assert cotenant.compare(whole, b).lost == ("wlm",)
    assert cotenant.compare(whole, cotenant.load(b)).lost == ("wlm",)
    (b / "more.json").write_bytes(next(whole.glob("*.wlm.*")).read_bytes())
    assert cotenant.compare(whole, cotenant.load(b, name="vae")).lost == ()


class ZMQInteractiveShell:
    """The shell of a notebook's kernel, by whose name rich knows it."""


def test_in_a_notebook_a_text_is_a_text(sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = cotenant.load(sample / "output").table(), cotenant.plan(users=1, isolation="none")
    before = list(map(str, made))
    assert all(before)
    monkeypatch.setattr(builtins, "get_ipython", ZMQInteractiveShell, raising=False)
    assert list(map(str, made)) == before


def test_a_wrong_condition_is_a_sentence(sample: Path) -> None:
    for wrong, sentence in (
        ({"margin": 2.0}, "A margin of 2.0 does not lie"),
        ({"margin": 0.1, "noise": sample / "A"}, "margin and noise both set"),
        ({"allow": ["colour"]}, "'colour'"),
    ):
        assert sentence in refusal(cotenant.compare, sample / "A", sample / "B", **wrong)


def test_compare_documents_only_differences_it_can_allow() -> None:
    named = re.search(r"`allow` names differences [^.]*", cotenant.compare.__doc__ or "")
    assert named is not None
    assert {*re.findall(r"`(\w+)`", named[0])} - {"allow"} <= {*differences_allowed()}


def test_a_plan_is_that_of_the_command(capsys: Capture) -> None:
    made = cotenant.plan(users=3, isolation="none", share=None)
    words = ("plan", "--users", 3, "--isolation", "none")
    assert json.loads(json.dumps(made.document)) == json.loads(call(capsys, *words, "--json")[1])
    assert str(made) == call(capsys, *words)[1]
    assert [slice_.tenant for slice_ in made.slices] == [0, 1, 2]
    assert made._repr_html_().startswith("<pre>")
    for wrong, sentence in (({"share": "half"}, "'half' is not time, mps"), ({"users": 0}, "0 users cannot")):
        assert sentence in refusal(cotenant.plan, **wrong)
