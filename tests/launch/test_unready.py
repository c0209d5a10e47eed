"""A program of `exec` that makes no step is described to its user, after half a minute and at its end."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from cotenant.launch.limits import Limits
from cotenant.suite.foreign import Foreign
from launch.test_observer import Heard
from tenants.fakes import launched, specs

PRINTS = "while :; do echo listening; echo 'step 1,7'; sleep 0.1; done"
USED = r"It has used \d+\.\d s of processor time and written \d+ lines"


SEEN = [
    ({}, r", and no optimizer of torch has stepped\. --count-line .* cotenant\.measure .* --runs "),
    ({"count_line": r"step ([\d,]+)"}, r", \d+ of which match; their group '1,7' is no number\. "),
    ({"count_line": "loss"}, r", none of which matches --count-line\."),
    ({"count_line": "step", "ready_line": "^ready"}, r", none of which matches --ready-line\."),
]
"""Flags of a user, and the words about its program that follow from them."""


def test_it_is_told_what_was_seen_and_which_flags_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cotenant.launch.launch.SEEN_AFTER_S", 1.0)
    heard, words = Heard(), ("/bin/sh", "-c", PRINTS)
    users = specs(tmp_path, *words, tenants=len(SEEN))
    planned = [replace(user, foreign=Foreign(words, **flags)) for user, (flags, _) in zip(users, SEEN, strict=True)]
    result = launched(planned, observer=heard, limits=Limits(ready_limit_s=1.2))
    (told,) = [call[1] for call in heard.calls if call[0] == "tell"]
    assert re.match(rf"User 0 is not ready after 1 s\. {USED}{SEEN[0][1]}", told)
    for tenant, (_, seen) in zip(result.tenants, SEEN, strict=True):
        assert re.match(rf"It was not ready within 1\.2 s\. {USED}{seen}", tenant.message)
        assert tenant.message.endswith(" Or give it longer with --ready-timeout.")
