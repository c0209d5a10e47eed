"""summary.txt: a line per launch, appended while the suite runs, and a last one with the total."""

from __future__ import annotations

from pathlib import Path

from cotenant.results.store import cannot_write


def launch_line(position: int, launches: int, failed: int, tenants: int, minutes: float, command: str) -> str:
    """Return the line of one launch, in the original's exact form."""
    count = f"{failed:2d}/{tenants:2d}" if failed else "  /  "
    verdict = "FAILED" if failed else "PASSED"
    return f"[{position:2d}/{launches:2d}][{count}] {verdict} | {minutes:8.2f} MIN | {' '.join(command.splitlines())}"


def total_line(seconds: float) -> str:
    """Return the suite's last line."""
    return f"Total Time {seconds:8.2f} s"


class Summary:
    """Appends lines to `summary.txt` in one directory. Raises CotenantError where that cannot be written."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "summary.txt"

    def append(self, line: str) -> None:
        try:
            with self._path.open("a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(line + "\n")
        except OSError as error:
            raise cannot_write(self._path.parent, error) from error
