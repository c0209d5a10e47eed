"""Several hosts side by side: one that is slower than its like, or has less, is named; equal ones are not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from commands.calling import Capture, call, write
from cotenant.report.hosts import host_sentences, hosts_view, jobs_on_hosts
from cotenant.report.renderers import html
from cotenant.results.record import Record
from report.making import launch, printed, rows_of, summary_of

JOBS = ("vae", "wlm", "dcgan", "gpt")


def machine(devices: int = 8, processors: str = "0-15", name: str = "Some GPU") -> dict[str, Any]:
    accelerators = [{"uuid": f"GPU-{at}", "name": name} for at in range(devices)]
    return {"model_name": "Some Processor", "accelerators": accelerators, "processors": {"usable": processors}}


def on(host: str, slower: float = 1.0, jobs: tuple[str, ...] = JOBS, **place: Any) -> list[Record]:
    """One launch of each job on a host; noise is a thousandth, another one for each job and host."""
    where = {"hostname": host, "machine": machine()} | place
    noise = {job: 1 + 0.001 * ((len(job) * 7 + len(host) * 3 + at) % 5) for at, job in enumerate(jobs)}
    return [one for job in jobs for one in launch(job, mean_ms=500 * slower * noise[job], place=where)]


def test_a_slower_host_is_named_with_its_share_and_stands_first() -> None:
    summary = summary_of([*on("n1"), *on("n2"), *on("n10", 1.1), *on("n3")])
    (said,) = host_sentences(summary)
    assert said == "n10 is slower than its like: it has 91 % (91 to 91 %) of their rate, over 4 jobs."
    first, *others = rows_of(hosts_view(summary))
    assert (first["host"], first["verdict"], first["n"], first["over"]) == ("n10", "slower", "4", "jobs")
    assert [row["host"] for row in others] == ["n1", "n2", "n3"]
    assert not [row for row in others if row["verdict"]]
    assert [column.heading for column in jobs_on_hosts(summary).columns][2:] == ["n1", "n2", "n10", "n3"]
    assert html(hosts_view(summary)).count('class="bad"') == 1, "a page marks the slower host alone"


def test_equal_hosts_and_hosts_of_other_devices_are_not_named() -> None:
    assert host_sentences(summary_of([*on("n1"), *on("n2"), *on("n3")])) == [
        "No host is slower than its like beyond noise."
    ]
    other = on("n2", 2.0, machine=machine(name="Another GPU"))
    assert host_sentences(summary_of([*on("n1"), *other])) == ["No two hosts are alike."]
    assert host_sentences(summary_of(on("n1"))) == []
    assert not hosts_view(summary_of(on("n1"))).shown


def test_a_host_with_fewer_devices_or_processors_is_named() -> None:
    fewer = on("n2", machine=machine(7)), on("n3", machine=machine(processors="0-13"))
    summary = summary_of([*on("n1"), *fewer[0], *fewer[1], *on("n4")])
    assert host_sentences(summary) == ["n2 has 7 devices, its like 8.", "n3 has 14 processors, its like 16."]
    assert [row["verdict"] for row in rows_of(hosts_view(summary))] == ["7 of 8 devices", "14 of 16 processors", "", ""]
    assert "7 of 8 devices" in printed([hosts_view(summary)], 120)


def test_many_hosts_have_a_row_each_and_no_columns() -> None:
    summary = summary_of([one for at in range(6) for one in on(f"n{at}", jobs=("vae",))])
    assert len(rows_of(hosts_view(summary))) == 6
    assert not jobs_on_hosts(summary).shown


@pytest.mark.usefixtures("unpictured")
def test_a_report_of_a_gathered_directory_begins_with_hosts(capsys: Capture, tmp_path: Any) -> None:
    for host, slower in (("n1", 1.0), ("n2", 1.0), ("n3", 1.2)):
        write(tmp_path / "gathered" / host, on(host, slower))
    page = tmp_path / "page.html"
    status, out, _ = call(capsys, "report", tmp_path / "gathered", "--html", page)
    assert status == 0
    assert out.startswith("host ")
    assert "n3 is slower than its like" in out
    assert page.read_text().count("n3 is slower than its like") == 2
    status, out, _ = call(capsys, "report", tmp_path / "gathered", "--table", "hosts", "--format", "json")
    document = json.loads(out)
    assert (document["schema"], document["view"]) == ("cotenant-view-1", "hosts")
    assert (document["rows"][0]["host"], document["rows"][0]["rated"]) == ("n3", 4)
    assert document["sentences"][0].startswith("n3 is slower than its like")
    assert "of one host" in call(capsys, "report", tmp_path / "gathered" / "n1", "--table", "hosts")[2]
