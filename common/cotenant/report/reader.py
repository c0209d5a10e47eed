"""Whoever reads what is printed may leave at any time: `cotenant report DIR | head`."""

from __future__ import annotations

import contextlib
from contextlib import AbstractContextManager


def may_leave() -> AbstractContextManager[object]:
    """Return a context for printing by rich, which to a reader that has left writes nothing more, and exits: but
    nothing has failed, and what comes after the printing is done all the same."""
    return contextlib.suppress(SystemExit)
