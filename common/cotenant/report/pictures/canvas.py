"""From a matplotlib figure to SVG inside a page: its colours are the page's, its ids its own, its numbers short.

A figure is drawn in marker colours that stand for the page's; so one picture serves light, dark and print.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Outline

INK, SOFT, LINE, ACCENT, WASH, PAPER = (f"#0{n}0{n}0{n}" for n in range(1, 7))
_PAGE = {
    INK: "currentColor",
    SOFT: "var(--soft)",
    LINE: "var(--line)",
    ACCENT: "var(--accent)",
    WASH: "var(--wash)",
    PAPER: "var(--paper)",
}
_SVG = "{http://www.w3.org/2000/svg}"
_HREF = "{http://www.w3.org/1999/xlink}href"
_NUMBERS = re.compile(r"-?\d+\.\d+")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_FONT = re.compile(r"font:\s*([\d.]+)px[^;]*")
_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "cotenant",
    "path.simplify": False,
    "font.size": 8,
    "text.color": SOFT,
    "text.parse_math": False,
    "axes.edgecolor": LINE,
    "axes.labelcolor": SOFT,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
}


@dataclass(frozen=True, slots=True)
class Margins:
    """Room around the axes, in inches: the same in all pictures that stand side by side."""

    left: float = 0.62
    right: float = 0.12
    top: float = 0.2
    bottom: float = 0.3


MARGINS = Margins()
WIDTH = 5.2
BAND = 0.34
"""Inches of a picture's width, and of the height of one tenant's band."""


def axes_of(height: float, width: float = WIDTH, margins: Margins = MARGINS) -> Axes:
    """Return the axes of a new figure; both sizes in inches, the margins included."""
    with mpl.rc_context(_SETTINGS):
        figure = Figure(figsize=(width, height))
        FigureCanvasSVG(figure)
        span = (width - margins.left - margins.right, height - margins.top - margins.bottom)
        axes = figure.add_axes((margins.left / width, margins.bottom / height, span[0] / width, span[1] / height))
        figure.patch.set_visible(False)
        axes.patch.set_visible(False)
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0, pad=4)
        axes.grid(axis="x", color=LINE, linewidth=0.6)
        axes.set_axisbelow(True)
    return axes


def bands(labels: Sequence[str]) -> Axes:
    """Return axes with a band per label, the first on top: band i lies around y = i."""
    axes = axes_of(MARGINS.top + MARGINS.bottom + BAND * len(labels))
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.set_yticks(range(len(labels)), labels)
    return axes


def dots(axes: Axes, x: npt.ArrayLike, y: npt.ArrayLike, size: float, **style: Any) -> None:
    """Draw round dots as one path of points with round caps: a fifth of the bytes that markers take."""
    xs, ys = np.asarray(x, float), np.asarray(y, float)
    vertices = np.repeat(np.column_stack([xs, ys]), 2, axis=0)
    codes = np.tile([Outline.MOVETO, Outline.LINETO], len(xs))
    style = {"facecolor": "none", "linewidth": size, "capstyle": "round"} | style
    axes.add_patch(PathPatch(Outline(vertices, codes), **style))


def boxes(axes: Axes, spans: Iterable[tuple[float, float]], y: float, height: float, **style: Any) -> None:
    """Draw all spans of x as boxes around y, in one path."""
    corners = [
        [(start, y - height / 2), (end, y - height / 2), (end, y + height / 2), (start, y + height / 2), (start, 0)]
        for start, end in spans
    ]
    if not corners:
        return
    codes = [Outline.MOVETO, Outline.LINETO, Outline.LINETO, Outline.LINETO, Outline.CLOSEPOLY] * len(corners)
    axes.add_patch(PathPatch(Outline(np.concatenate(corners), codes), **({"linewidth": 0} | style)))


def svg(axes: Axes, name: str) -> str:
    """Return the axes' figure as an SVG element for a page; `name` makes its ids unique there."""
    stream = io.StringIO()
    with mpl.rc_context(_SETTINGS), warnings.catch_warnings():
        # The page's fonts draw the text, not the one it was measured with.
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)
        assert axes.figure is not None
        axes.figure.canvas.print_figure(
            stream, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type"))
        )
    root = ElementTree.fromstring(stream.getvalue())
    _strip(root)
    used = set(_REFERENCE.findall(ElementTree.tostring(root, encoding="unicode")))
    used |= {one.attrib[_HREF].removeprefix("#") for one in root.iter() if _HREF in one.attrib}
    for one in root.iter():
        one.attrib = dict(_attributes(one.attrib, name, used))
        one.tag = one.tag.removeprefix(_SVG)
        # matplotlib indents; within a page that is a third of the bytes.
        one.tail = None
        one.text = one.text if one.text and one.text.strip() else None
    for size in ("width", "height"):
        root.attrib.pop(size, None)
    root.set("aria-hidden", "true")
    return ElementTree.tostring(root, encoding="unicode")


def _strip(element: ElementTree.Element) -> None:
    """Remove metadata and the style sheet, which would hold for the whole page."""
    for child in list(element):
        if child.tag in (f"{_SVG}metadata", f"{_SVG}style"):
            element.remove(child)
        else:
            _strip(child)


def _attributes(attributes: dict[str, str], name: str, used: set[str]) -> Iterable[tuple[str, str]]:
    for key, value in attributes.items():
        if key == "id":
            if value in used:
                yield key, f"{name}-{value}"
        elif key == _HREF:
            yield "href", f"#{name}-{value.removeprefix('#')}"
        elif key == "style":
            yield key, _style(_REFERENCE.sub(rf"url(#{name}-\1)", value))
        elif key in ("d", "x", "y", "transform", "points", "width", "height"):
            yield key, _NUMBERS.sub(_short, value).replace(" \n", " ").replace("\n", " ").strip()
        else:
            yield key, _REFERENCE.sub(rf"url(#{name}-\1)", value)


def _style(value: str) -> str:
    for marker, colour in _PAGE.items():
        value = value.replace(marker, colour)
    return _FONT.sub(r"font-size: \1px", value)


def _short(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")
