"""A bar per tenant of a mix: its rate together over its rate alone, and a line at its entitlement."""

from __future__ import annotations

from cotenant.report.beside import MixBlock
from cotenant.report.pictures.canvas import ACCENT, INK, LEFT, SOFT, axes_of, beside, boxes, svg
from cotenant.text import printable

LETTER, BAR, AROUND = 0.066, 0.26, 0.5
"""Inches of a letter of the tenants' names, of a bar with the room to the next, and above and below all of them."""
NAME_LENGTH = 28
NUMBERS = 0.5
"""Inches beside the bars for the numbers."""


def progress_bars(block: MixBlock, name: str) -> str | None:
    """Return the bars in the tenants' order; None where no tenant's progress is known."""
    known = [(tenant, tenant.progress) for tenant in block.tenants if tenant.progress is not None]
    if not known:
        return None
    labels = [printable(f"{tenant.tenant} {tenant.job}")[:NAME_LENGTH] for tenant, _ in known]
    axes = axes_of(AROUND + BAR * len(known), right=NUMBERS, left=max(LEFT, LETTER * max(map(len, labels)) + 0.15))
    axes.grid(visible=False, axis="y")
    most = 1.05
    for y, (_, progress) in enumerate(known):
        boxes(axes, [(0.0, progress.value)], y, 0.62, facecolor=ACCENT, alpha=0.55)
        if (ends := progress.interval) is not None:
            style = {"linewidth": 0.7, "linestyle": (0, (1, 1.2))} if progress.within else {"linewidth": 1.1}
            axes.plot(ends, [y, y], color=SOFT if progress.within else INK, **style)
            most = max(most, min(1.6, ends[1]))
        most = max(most, progress.value)
        beside(axes, y, f"{100 * progress.value:.0f} %")
    for entitlement in sorted({tenant.entitlement for tenant, _ in known}):
        axes.axvline(entitlement, color=INK, linewidth=1.0)
    axes.set_xlim(0, most + 0.02)
    axes.set_ylim(len(known) - 0.4, -0.6)
    axes.set_yticks(range(len(known)), labels, color=INK)
    axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    return svg(axes, name)
