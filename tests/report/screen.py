"""The part of a terminal that a live view uses: the text that stands on it after everything was written."""

from __future__ import annotations

import re

_SEQUENCE = re.compile(r"\x1b\[(\??[\d;]*)([A-Za-z])")


class Screen:
    """Lines of text under a cursor; an unknown sequence is an error, colours are ignored."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.lines = [""]
        self.cursor_shown = True
        self._row = self._column = 0

    def feed(self, text: str) -> None:
        at = 0
        while at < len(text):
            if found := _SEQUENCE.match(text, at):
                self._obey(found[1], found[2])
                at = found.end()
            else:
                self._put(text[at])
                at += 1

    @property
    def shown(self) -> list[str]:
        """The lines without the spaces at their ends and the empty lines below them."""
        return "\n".join(line.rstrip() for line in self.lines).rstrip().split("\n")

    def _obey(self, numbers: str, letter: str) -> None:
        if letter == "A":
            self._row = max(0, self._row - int(numbers or 1))
        elif letter == "K" and numbers == "2":
            self.lines[self._row] = ""
        elif letter in "hl" and numbers == "?25":
            self.cursor_shown = letter == "h"
        else:
            assert letter == "m", (numbers, letter)

    def _put(self, char: str) -> None:
        if char == "\r":
            self._column = 0
        elif char == "\n":
            self._down()
        else:
            assert char.isprintable(), repr(char)
            if self._column == self.width:
                self._down()
            line = self.lines[self._row].ljust(self._column)
            self.lines[self._row] = line[: self._column] + char + line[self._column + 1 :]
            self._column += 1

    def _down(self) -> None:
        # In a file as on a terminal a new line begins at the left.
        self._row, self._column = self._row + 1, 0
        if self._row == len(self.lines):
            self.lines.append("")
