"""Commands of `exec`: programs that are no benchmarks of ours."""

from __future__ import annotations

import hashlib
import re
import shlex
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from cotenant.confidential import is_secret, words_without

USER, UID = "{user}", "{uid}"
"""In a word, they stand for a copy's number, from 0, and for the repetition's number."""
SUITE = "exec"
"""The suite of all such commands."""
_WORD = re.compile(r"\w[\w.-]*")


@dataclass(frozen=True, slots=True)
class Foreign:
    """A command of `exec`, and how it is counted: in units of `item`, `items` of them a step.

    `ready_line` and `count_line` are patterns of its output; a command without steps is run `runs` times. With `again`
    it is restarted if it ends early.
    """

    words: tuple[str, ...]
    item: str = ""
    items: float = 1.0
    ready_line: str = ""
    count_line: str = ""
    runs: int = 10
    again: bool = False

    @property
    def counting(self) -> dict[str, Any]:
        """The settings that decide which steps are counted, and for how many items."""
        return {name: getattr(self, name) for name in ("item", "items", "ready_line", "count_line", "runs")}

    def words_of(self, tenant: int, uid: int) -> list[str]:
        """Return the command of one copy in a repetition."""
        return [word.replace(USER, str(tenant)).replace(UID, str(uid)) for word in self.words]

    @property
    def shown(self) -> str:
        """The command of all copies, with secrets concealed."""
        return shlex.join(words_without(self.words))

    @property
    def arguments(self) -> dict[str, str | float]:
        """The arguments that are equal in records of equal work: the command, and the items of a step.

        A command with concealed words that may be no secrets also has a hash, of its words without certain secrets.
        """
        true = shlex.join(words_without(self.words, hides=is_secret))
        hashed = {} if true == self.shown else {"program_sha256": hashlib.sha256(true.encode()).hexdigest()}
        return {"program": self.shown} | hashed | ({"items_a_step": self.items} if self.items != 1 else {})

    @property
    def stem(self) -> str:
        """The name of a script among the words, else of the program."""
        names = [Path(word).name for word in self.words]
        scripts = (Path(name).stem for name in names if name.endswith((".py", ".sh")))
        modules = (module for flag, module in pairwise(names) if flag == "-m")
        return next((name for name in (*scripts, *modules) if _WORD.fullmatch(name)), names[0])
