"""Turns a matplotlib figure into SVG inside a page, with the page's colours, unique ids and short numbers.

Figures use marker colours in place of the page's, so that one picture serves light, dark and print.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Outline
from matplotlib.ticker import MaxNLocator

from cotenant.text import printable

INK, SOFT, LINE, ACCENT, WASH, PAPER = (f"#0{n}0{n}0{n}" for n in range(1, 7))
_PAGE = {
    INK: "currentColor",
    SOFT: "var(--soft)",
    LINE: "var(--line)",
    ACCENT: "var(--accent)",
    WASH: "var(--wash)",
    PAPER: "var(--paper)",
}
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
_OUTSIDE = re.compile(r"<\?xml.*?\?>|<!DOCTYPE.*?>|<metadata>.*?</metadata>|<style.*?</style>", re.DOTALL)
_TAG = re.compile(r"<[^<>]*>")
# Not needed: the page sets fonts, sizes and namespaces.
_NEEDLESS = re.compile(
    r" xmlns(:xlink)?=\"[^\"]*\"| (width|height)=\"[\d.]+pt\"| font-family:[^;\"]*;"
    r"| transform=\"rotate\(-0 [^\"]*\"|(?<=<g) id=\"[^\"]*\""
)
_EMPTY = re.compile(r"<g/>|<defs></defs>")
# Dots (lines without a length) and boxes (two corners) are most of a page's bytes.
_DOT = re.compile(r"M ([\d.]+) ([\d.]+) L \1 \2 ")
_BOX = re.compile(r"M ([\d.]+) ([\d.]+) L ([\d.]+) \2 L \3 ([\d.]+) L \1 \4 (?:L \1 \2 )?z ")
_ID = re.compile(r"( id=\"|url\(#|href=\"#)")

WIDTH, LEFT, TOP, BOTTOM = 5.2, 0.62, 0.2, 0.3
BAND = 0.34
"""Inches of a picture's width, of the room left of, above and below its axes, and of the height of a user's band."""
DESK, PHONE = 10.0, 4.2
"""Inches of a wide picture on a desk, and on a phone, which would shrink the letters of a wider one."""
LETTER, MARGIN = 0.066, 0.15
"""Inches of a letter in a row's name and the words beside it, and of the margin around these."""
DOTTED = (0, (1, 1.2))
Interval = tuple[float, float]


def axes_of(
    height: float, right: float = 0.12, bottom: float = BOTTOM, width: float = WIDTH, left: float = LEFT
) -> Axes:
    """Return the axes of a new figure; all sizes in inches, the height with the room above and below."""
    figure = Figure(figsize=(width, height))
    FigureCanvasSVG(figure)
    figure.subplots_adjust(left / width, bottom / height, 1 - right / width, 1 - TOP / height)
    axes = figure.add_subplot()
    figure.patch.set_visible(False)
    axes.patch.set_visible(False)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, pad=4)
    axes.grid(color=LINE, linewidth=0.6)
    axes.set_axisbelow(True)
    return axes


def rows_of_axes(names: Iterable[str], height: float, width: float = WIDTH, beside: Sequence[str] = ()) -> Axes:
    """Return axes with a row per name, the first on top: row i is around y = i, `height` inches high.

    `beside` are the words to the right of the rows.
    """
    shown = [printable(name)[: min(28, int(5.3 * width))] for name in names]
    room = MARGIN + LETTER * max(map(len, beside), default=0)
    left = max(LEFT, MARGIN + LETTER * max(map(len, shown)))
    axes = axes_of(TOP + BOTTOM + height * len(shown), right=room, width=width, left=left)
    axes.grid(visible=False, axis="y")
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.set_yticks(range(len(shown)), shown, color=INK)
    for y, words in enumerate(beside):
        axes.annotate(words, (1, y), (6, 0), ("axes fraction", "data"), "offset points", va="center", color=INK)
    return axes


def ticks(axis: Axis, most: int, show: Callable[[float], str] | None = None, **places: Any) -> None:
    """Set about `most` ticks at round values, each formatted by `show`; `places` are settings of MaxNLocator."""
    axis.set_major_locator(MaxNLocator(most, **places))
    if show is not None:
        axis.set_major_formatter(lambda value, _: show(value))


def whole_percent(share: float) -> str:
    """Return `97 %`."""
    return f"{100 * share:.0f} %"


LEAST, MOST = 0.4, 1.6
"""The ends of the widest axis of shares: values beyond are drawn at its ends. Shares far above 1 come from too few
observations."""


def shares_axis(
    values: Iterable[float], inner: Interval = (0.9, 1.1), least: float = LEAST, most: float = MOST
) -> Interval:
    """Return the ends of an axis of shares that contains these values and `inner`, within `least` to `most`."""
    points = [*values, *inner]
    return max(least, min(points) - 0.02), min(most, max(points) + 0.02)


def dots(axes: Axes, x: npt.ArrayLike, y: npt.ArrayLike, size: float, **style: Any) -> None:
    """Draw round dots as one path of points with round caps: a fifth of the bytes of markers."""
    vertices = np.repeat(np.column_stack(np.broadcast_arrays(x, y)).astype(float), 2, axis=0)
    codes = np.tile([Outline.MOVETO, Outline.LINETO], len(vertices) // 2)
    style = {"facecolor": "none", "linewidth": size, "capstyle": "round"} | style
    outline = Outline(vertices, codes)
    outline.should_simplify = False  # simplifying would drop lines without a length: the dots
    axes.add_patch(PathPatch(outline, **style))


def boxes(axes: Axes, x: Sequence[Interval], y: Sequence[Interval], **style: Any) -> None:
    """Draw boxes between their ends in x and y, as one path."""
    corners = [
        ((left, low), (right, low), (right, high), (left, high))
        for (left, right), (low, high) in zip(x, y, strict=True)
    ]
    if corners:
        outline = Outline.make_compound_path_from_polys(np.array(corners))
        axes.add_patch(PathPatch(outline, **({"linewidth": 0} | style)))


def lines(axes: Axes, x: Sequence[Interval], y: Sequence[Interval], **style: Any) -> None:
    """Draw lines between their ends in x and y, as one path."""
    if x:
        gaps = ((*pair, np.nan) for pair in x), ((*pair, np.nan) for pair in y)
        across, up = (np.concatenate([*pairs]) for pairs in gaps)
        axes.plot(across, up, **{"color": INK, "linewidth": 1.1, **style})


drawn: ContextVar[dict[str, Axes] | None] = ContextVar("drawn", default=None)
"""The charts drawn, by name, while `figures.collected` asks for them; else None."""


drawing = mpl.rc_context(_SETTINGS)
"""The context for making and writing pictures, a decorator of the functions that draw."""


@drawing
def svg(axes: Axes, name: str) -> Markup:
    """Return the axes' figure as an SVG element for a page; `name` makes its ids unique there."""
    if (kept := drawn.get()) is not None:
        kept[name] = axes
    stream = io.StringIO()
    with warnings.catch_warnings():
        # The page draws text in its own fonts, so a missing glyph in matplotlib's font is harmless.
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)
        figure = axes.figure
        assert isinstance(figure, Figure)
        figure.canvas.print_figure(stream, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    width, _ = figure.get_size_inches()
    text = re.sub(r">\s+<", "><", _OUTSIDE.sub("", stream.getvalue())).strip()
    # Change only tags: the text between them came from files.
    text = _TAG.sub(lambda tag: _shown(tag[0], name), text)
    return Markup(_EMPTY.sub("", text).replace("<svg", f'<svg aria-hidden="true" style="--inches:{width:g}"', 1))


def _shown(tag: str, name: str) -> str:
    tag = _NEEDLESS.sub("", tag).replace("xlink:href", "href")
    tag = re.sub(r"\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}".rstrip("0").rstrip("."), tag)
    tag = re.sub(r"\s+", " ", _ID.sub(rf"\g<1>{name}-", tag))
    tag = _DOT.sub(r"M\1 \2h0", _BOX.sub(r"M\1 \2H\3V\4H\1z", tag))
    for marker, colour in _PAGE.items():
        tag = tag.replace(marker, colour)
    return tag
