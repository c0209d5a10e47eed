"""`report --figures DIR`: each chart as SVG and PDF in the colours of paper, and tables as LaTeX."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

from commands.calling import write
from cotenant.cli import main
from cotenant.report.figures import PRINTED, file_name, job_names, latex, latex_text
from cotenant.report.grid import Cell, Column, Grid, Row, RowGroup
from cotenant.report.jobs import jobs_grid
from report.making import launch, summary_of


def test_charts_and_tables_are_files_of_their_own(tmp_path: Path) -> None:
    records = write(tmp_path / "out", [one for name in ("vae", "cart_pole") for one in launch(name)])
    page, figures = tmp_path / "page.html", tmp_path / "figures"
    assert main(["report", str(records), "--html", str(page), "--figures", str(figures)]) == 0
    names = {path.name for path in figures.iterdir()}
    charts = {name.removesuffix(".svg") for name in names if name.endswith(".svg")}
    assert {f"{job}-{kind}" for job in ("vae", "cart_pole") for kind in ("observations", "timeline")} <= charts
    assert page.read_text().count("<svg") == len(charts), "each chart of the page, which has them as ever"
    assert names == {f"{chart}.{form}" for chart in charts for form in ("svg", "pdf")} | {"jobs.tex"}
    for chart in charts:
        text = (figures / f"{chart}.svg").read_text()
        ElementTree.fromstring(text)
        assert not [marker for marker in PRINTED if marker in text], "the page's colours mean nothing on paper"
        assert any(colour in text for colour in PRINTED.values())
        printed = (figures / f"{chart}.pdf").read_bytes()
        assert printed.startswith(b"%PDF-")
        assert printed.rstrip().endswith(b"%%EOF")
    table = (figures / "jobs.tex").read_text()
    head, *rows = [line for line in table.splitlines() if line.endswith(r" \\")]
    assert [row.partition(" & ")[0] for row in rows] == [r"cart\_pole", "vae"]
    assert {len(re.findall(r"(?<!\\)&", row)) for row in rows} == {len(re.findall(r"(?<!\\)&", head))}


def test_a_table_escapes_what_latex_reads_as_more_than_text() -> None:
    name: Column[str] = Column("a_b", Cell, left=True)
    share: Column[str] = Column("%", Cell)
    groups = [
        RowGroup([Row({name: Cell("x & y\nz"), share: Cell("±5 %", note="(n 3)")})], title="one #1"),
        RowGroup([Row({name: Cell(r"\~^{}$"), share: Cell("")}), Row({name: Cell("[*]")})], title="two"),
    ]
    assert latex(Grid([name, share], groups)).splitlines() == [
        r"% needs \usepackage{booktabs}",
        r"\begin{tabular}{lr}",
        r"\toprule",
        r"a\_b & \% \\",
        r"\midrule",
        r"\multicolumn{2}{l}{one \#1} \\",
        r"x \& y z & $\pm$5 \% (n 3) \\",
        r"\midrule",
        r"\multicolumn{2}{l}{two} \\",
        r"\textbackslash{}\textasciitilde{}\textasciicircum{}\{\}\$ &  \\",
        r"{[}{*}] &  \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]
    assert latex_text("a\tb\x1b[31m\x07") == "a b?"


def test_two_hosts_of_one_suite_are_told_apart() -> None:
    records = [one for host in ("node1", "node2") for one in launch("vae", place={"hostname": host})]
    heads = [line for line in latex(jobs_grid(summary_of(records))).splitlines() if "multicolumn" in line]
    assert [head.partition("{baselines, ")[2].partition(":")[0] for head in heads] == ["node1", "node2"]


def test_a_file_is_named_after_its_job_and_leaves_no_directory() -> None:
    assert file_name("j1t", ["vae", "../x/y"]) == "x-y-timeline"
    assert (file_name("j0h2", ["vae"]), file_name("shares10", [])) == ("vae-h2", "shares10")
    # A job on two hosts has charts of two names.
    labels = [("vae", "one"), ("vae", "two"), ("wlm", "one"), ("a b", "one"), ("a/b", "one")]
    jobs: Any = [SimpleNamespace(label=label, suite="cpu", host=host) for label, host in labels]
    names = job_names(jobs)
    assert names[:3] == ["vae-cpu-one", "vae-cpu-two", "wlm"]
    assert len({file_name(f"j{index}t", names) for index in range(len(jobs))}) == len(jobs)
    # Names of mixes grow with their users.
    mixes: Any = [SimpleNamespace(label=f"{'日' * 99}{job}", suite="", host="") for job in ("vae", "wlm")]
    files = {f"{file_name(f'j{index}s', job_names(mixes))}.svg" for index in range(2)}
    assert len(files) == 2
    assert max(len(file.encode()) for file in files) <= 255
