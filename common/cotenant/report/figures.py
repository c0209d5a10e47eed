"""The charts of a report's page as files, SVG and PDF."""

from __future__ import annotations

import io
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgba
from matplotlib.figure import Figure

from cotenant.report.pictures.canvas import ACCENT, INK, LINE, PAPER, SOFT, WASH, drawn
from cotenant.report.summary import JobSummary
from cotenant.results.store import write_whole

PRINTED = {INK: "#111111", SOFT: "#555555", LINE: "#dddddd", ACCENT: "#1f5fae", WASH: "#c9dcf2", PAPER: "#ffffff"}
"""The colour on paper of each marker colour of a picture."""
_COLOURS = ("color", "facecolor", "edgecolor", "markerfacecolor", "markeredgecolor")
_OF_JOB, _KINDS = re.compile(r"j(\d+)(.+)"), {"s": "observations", "t": "timeline", "m": "memory"}
_OTHER_NAME = re.compile(r"[^\w.-]+")
NAME_BYTES = 200
"""The most bytes of a job's name in a file's name; the chart's name and the suffix follow."""


@contextmanager
def collected() -> Iterator[dict[str, Axes]]:
    """Collect the charts of every page made within this context, by their names on the page."""
    charts: dict[str, Axes] = {}
    token = drawn.set(charts)
    try:
        yield charts
    finally:
        drawn.reset(token)


def write_charts(charts: Mapping[str, Axes], jobs: Sequence[str], folder: Path) -> None:
    """Write each chart as NAME.svg and NAME.pdf in the colours of paper.

    `jobs` are the names of the page's jobs in order (`job_names`), after which its charts are named.
    """
    settings: dict[Any, Any] = {
        "svg.fonttype": "none",
        "svg.hashsalt": "cotenant",
        "pdf.fonttype": 42,
        "text.parse_math": False,
    }
    for name, axes in charts.items():
        figure = axes.figure
        assert isinstance(figure, Figure)
        _recolour(figure)
        for form, date in (("svg", "Date"), ("pdf", "CreationDate")):
            stream = io.BytesIO()
            with mpl.rc_context(settings), warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)
                figure.savefig(stream, format=form, metadata={date: None})
            write_whole(folder / f"{chart_file_name(name, jobs)}.{form}", stream.getvalue())


def job_names(jobs: Sequence[JobSummary]) -> list[str]:
    """Return a name for each job's charts: its label, with suite and host if several jobs have that label."""
    labels = Counter(job.label for job in jobs)
    long = [job.label if labels[job.label] == 1 else f"{job.label}-{job.suite}-{job.host}" for job in jobs]
    # Two names may differ only in characters that a file's name cannot have, or beyond NAME_BYTES.
    safe = [_OTHER_NAME.sub("-", name).encode()[:NAME_BYTES].decode(errors="ignore").strip("-.") for name in long]
    counts = Counter(safe)
    return [name if counts[name] == 1 else f"{name}-{index}" for index, name in enumerate(safe, start=1)]


def chart_file_name(chart: str, jobs: Sequence[str]) -> str:
    """Return the name of a chart's files: `vae-timeline` for `j3t` if vae is job 3; other charts keep their names."""
    if found := _OF_JOB.fullmatch(chart):
        index, kind = found.groups()
        chart = f"{jobs[int(index)]}-{_KINDS.get(kind, kind)}"
    return _OTHER_NAME.sub("-", chart).strip("-.")


def _recolour(figure: Figure) -> None:
    """Replace the artists' marker colours by the colours on paper, keeping transparency."""
    for artist in figure.findobj():
        for name in _COLOURS:
            get, put = (getattr(artist, f"{verb}_{name}", None) for verb in ("get", "set"))
            if get is None or put is None:
                continue
            try:
                marker, (*_, alpha) = to_hex(get()), to_rgba(get())
            except ValueError:  # several colours, which our pictures do not use
                continue
            if marker in PRINTED:
                put(to_rgba(PRINTED[marker], alpha))
