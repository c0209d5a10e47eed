"""Files that a tenant puts among the records, or values nested too deep, harm its record alone: as root and as a user.

A thing in the place of a file of ours is set aside, later jobs run, and no record goes elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

from cotenant.results.journal import Ended, Launched, read_journal
from tenants.fixtures import folder_of
from tenants.suites import ByJob, Suites, found, job, rogue

USER = 65534
NOT_ROOT = f"setpriv --reuid {USER} --regid {USER} --clear-groups".split()
READING = ["--inh-caps", "+dac_read_search", "--ambient-caps", "+dac_read_search"]
"""The checkout or the interpreter may lie where only root may read."""


class SuitesOf(Suites):
    """Suites of whoever runs the tests, root as a rule, or of a user who has no rights."""

    def __init__(self, folder: Path, as_a_user: bool) -> None:
        (folder / "tmp").mkdir()
        super().__init__(folder, folder / "tmp", folder.name, "none")
        if as_a_user:
            self.before = [*NOT_ROOT, *READING, *self.before]
            for path in (folder, folder / "tmp"):
                os.chown(path, USER, USER)


@pytest.fixture(scope="module", params=["as-we-are", pytest.param("as-a-user", marks=pytest.mark.slow)])
def suites(request: pytest.FixtureRequest) -> Iterator[SuitesOf]:
    with folder_of(os.geteuid()) as folder:
        yield SuitesOf(folder, as_a_user=request.param == "as-a-user" and os.geteuid() == 0)


PUT = {
    "first": {"summary.txt": "fifo", "cotenant.journal": "text", "logs": "link-to-directory"},
    "second": {"summary.txt": "link", "cotenant.journal": "fifo"},
}
KINDS = {"fifo": "a pipe", "link": "a link", "link-to-directory": "a link", "text": "a file"}


@pytest.fixture(scope="module")
def ended(suites: SuitesOf) -> ByJob:
    jobs = [
        rogue("nested", "done", "say", "nested"),
        *(rogue(name, "record", "put", *chain(*((kind, at) for at, kind in put.items()))) for name, put in PUT.items()),
        job(name="after", group="all"),
    ]
    ended = suites.run(jobs, "--users", 2, status=1)
    assert "Traceback" not in ended.stderr, ended.stderr
    return suites.by_job()


def test_a_record_nested_too_deep_fails_its_tenant_alone(ended: ByJob) -> None:
    failed, completed = ended["nested"]
    assert (failed["outcome"], completed["outcome"]) == ("failed", "completed")
    assert "It does not speak the protocol: a message nested more than 64 levels deep" in failed["message"]


def test_things_put_in_the_place_of_our_files_are_set_aside(ended: ByJob, suites: SuitesOf) -> None:
    for name, put in PUT.items():
        for record in ended[name]:
            assert record["outcome"] == "completed"
            said = [each["sentence"] for each in found(record, "file_replaced")]
            assert len(said) == len(put), said
            for place, kind in put.items():
                assert any(f" there was {KINDS[kind]}, which is {place}." in each for each in said), (name, place)
    assert [record["outcome"] for record in ended["after"]] == ["completed"]
    assert not [each for record in ended["after"] for each in found(record, "file_replaced")]
    assert (suites.base / "link").read_text() == "precious"
    assert not list((suites.base / "link-to-directory").iterdir())


def test_the_summary_goes_on_and_the_journal_has_every_launch(ended: ByJob, suites: SuitesOf) -> None:
    assert [line[1:6] for line in suites.summary()[:-1]] == [" 3/ 4", " 4/ 4"]
    entries = read_journal(suites.output).entries
    assert [entry.label for entry in entries if isinstance(entry, Launched)] == list(ended)
    assert isinstance(entries[-1], Ended)
    logs = {path.name for path in (suites.output / "logs").iterdir()}
    assert logs == {"second.R0.T0.log", "second.R0.T1.log", "after.R0.T0.log"}


@pytest.mark.parametrize("way", ["link-to-directory", pytest.param("directory", marks=pytest.mark.slow)])
def test_a_replaced_output_directory_keeps_its_records(way: str, suites: SuitesOf) -> None:
    """Also the logs and the summary of later launches lie where the suite began."""
    output = suites.base / way.upper() / "out"
    jobs = [rogue("replaces", "observed", "put", way, ""), job("sums.py", "--repeat", 3, name="after")]
    ended = suites.run(jobs, "--users", 1, "--outdir", output, status=1)
    assert f"The name {output} leads elsewhere since this suite began: its records are in {output}.was." in ended.stderr
    assert not list(output.iterdir())
    kept = output.with_name("out.was")
    assert len(list(kept.glob("*.json"))) == 2
    assert len(list((kept / "logs").iterdir())) == 2
    assert len((kept / "summary.txt").read_text().splitlines()) == 3
    (end,) = [entry for entry in read_journal(kept).entries if isinstance(entry, Ended)]
    assert end.interrupted is None
    for path in kept.glob("*.json"):
        assert "output_replaced" in path.read_text()
