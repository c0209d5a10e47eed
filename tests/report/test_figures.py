"""`report --figures DIR`: each chart as SVG and PDF in the colours of paper."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

from commands.calling import write
from cotenant.cli import main
from cotenant.report.figures import PRINTED, chart_file_name, job_names
from report.making import launch


def test_charts_are_files_of_their_own(tmp_path: Path) -> None:
    records = write(tmp_path / "out", [one for name in ("vae", "cart_pole") for one in launch(name)])
    page, figures = tmp_path / "page.html", tmp_path / "figures"
    assert main(["report", str(records), "--html", str(page), "--figures", str(figures)]) == 0
    names = {path.name for path in figures.iterdir()}
    charts = {name.removesuffix(".svg") for name in names if name.endswith(".svg")}
    assert {f"{job}-{kind}" for job in ("vae", "cart_pole") for kind in ("observations", "timeline")} <= charts
    assert page.read_text().count("<svg") == len(charts), "each chart of the page, which has them as ever"
    assert names == {f"{chart}.{form}" for chart in charts for form in ("svg", "pdf")}
    for chart in charts:
        text = (figures / f"{chart}.svg").read_text()
        ElementTree.fromstring(text)
        assert not [marker for marker in PRINTED if marker in text], "the page's colours mean nothing on paper"
        assert any(colour in text for colour in PRINTED.values())
        printed = (figures / f"{chart}.pdf").read_bytes()
        assert printed.startswith(b"%PDF-")
        assert printed.rstrip().endswith(b"%%EOF")


def test_a_file_is_named_after_its_job_and_leaves_no_directory() -> None:
    assert chart_file_name("j1t", ["vae", "../x/y"]) == "x-y-timeline"
    assert (chart_file_name("j0h2", ["vae"]), chart_file_name("shares10", [])) == ("vae-h2", "shares10")
    # A job on two hosts has charts of two names.
    labels = [("vae", "one"), ("vae", "two"), ("wlm", "one"), ("a b", "one"), ("a/b", "one")]
    jobs: Any = [SimpleNamespace(label=label, suite="cpu", host=host) for label, host in labels]
    names = job_names(jobs)
    assert names[:3] == ["vae-cpu-one", "vae-cpu-two", "wlm"]
    assert len({chart_file_name(f"j{index}t", names) for index in range(len(jobs))}) == len(jobs)
    # Names of mixes grow with their users.
    mixes: Any = [SimpleNamespace(label=f"{'日' * 99}{job}", suite="", host="") for job in ("vae", "wlm")]
    files = {f"{chart_file_name(f'j{index}s', job_names(mixes))}.svg" for index in range(2)}
    assert len(files) == 2
    assert max(len(file.encode()) for file in files) <= 255
