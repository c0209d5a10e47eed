"""Prints to a terminal or to a pipe that may be closed at any time: `./run.sh | head`."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from cotenant.text import printable, visible

if TYPE_CHECKING:
    from rich.console import Console

    from cotenant.report.live import LiveView
    from cotenant.report.progress import PlainView, Planned
    from cotenant.report.view import View


def settle_streams() -> None:
    """Prevent a closed stream, or a character that a stream cannot encode, from ending a command."""
    # A table's columns keep their width if one character replaces one.
    for name, errors in (("stdout", "replace"), ("stderr", "backslashreplace")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w"))
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=errors)


def tell(text: str) -> None:
    """Print a text and a line's end at once. A suite and its records go on if the reader has left."""
    try:
        print(visible(text).removesuffix("\n"), flush=True)
    except BrokenPipeError:
        mute()


def tell_folded(lines: Iterable[str]) -> None:
    """Print lines, on a terminal folded between words; a path stays whole."""
    if sys.stdout.isatty():
        width = shutil.get_terminal_size().columns
        fold = textwrap.TextWrapper(width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
        lines = [fold.fill(line) for line in lines]
    tell("\n".join(lines))


def tell_view(view: View, form: str) -> None:
    """Print a view as `text`, or as a file of this form."""
    from cotenant.report.renderers import FILES, show

    if form == "text":
        show([view])
    else:
        tell(FILES[form](view))


def write_page(path: Path, page: str) -> None:
    """Write a page to the file that --html names. Raises CotenantError if it cannot be written."""
    from cotenant.results.store import write_named

    write_named(path, page.encode(errors="replace"), "--html names another file.")
    warn(f"{path} is written.")


def tell_document(document: Mapping[str, Any]) -> None:
    """Print one JSON document; its `schema` names its form."""
    tell(json.dumps(document, indent=1))


def note(line: str) -> None:
    """Print an optional line on standard error, beside a document or a table on standard output."""
    try:
        print(visible(line), file=sys.stderr, flush=True)
    except BrokenPipeError:
        mute(sys.stderr)


def warn(*sentences: str) -> None:
    """Print sentences on standard error, a line each; quotations from files are made printable."""
    for sentence in sentences:
        note(f"cotenant: {printable(sentence)}")


def mute(stream: TextIO | None = None) -> None:
    """Discard a stream, by default standard output, with the rest that Python flushes at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, (stream or sys.stdout).fileno())
    os.close(nowhere)


def live_console() -> Console | None:
    """Return the console of a terminal that can be redrawn; None if the output is no such terminal."""
    if not sys.stdout.isatty():
        return None
    from rich.console import Console

    console = Console()
    return None if console.is_dumb_terminal else console


@contextlib.contextmanager
def shown_suite(planned: Sequence[Planned]) -> Iterator[LiveView | PlainView]:
    """Yield a view of a suite of these launches: live on a terminal that can be redrawn, else plain lines."""
    if (console := live_console()) is None:
        # Imported here, since most commands do not need the modules that read records.
        from cotenant.report.progress import PlainView

        yield PlainView(planned, tell)
        return
    from cotenant.report.live import LiveView

    view = LiveView(planned, console)
    try:
        yield view
    finally:
        view.close()
        if view.lost:
            mute()
