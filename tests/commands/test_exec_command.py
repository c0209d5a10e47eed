"""`exec`: what it refuses before anything starts."""

from __future__ import annotations

import pytest

from commands.calling import Capture, call


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "No command stands behind --."),
        (("--", "no-such-program"), "'no-such-program' is no program that can be run."),
        (("--runs", "0", "--", "true"), "--runs 0 is no number of runs."),
        (("--ready-line", "x", "--", "true"), "Add --count-line REGEX."),
        (("--count-line", "(", "--", "true"), "'(' is no regular expression: "),
        (("--items", "none", "--", "true"), "'none' is no number of items"),
        (("--uid", "-1", "--", "true"), "--uid -1 is negative."),
        (("--as", "a/b", "--", "true"), "It becomes part of file names"),
        (("true",), "'true' is no flag"),
    ],
)
def test_a_wrong_call_is_refused_in_a_sentence(capsys: Capture, words: tuple[str, ...], sentence: str) -> None:
    status, _, said = call(capsys, "exec", *words)
    assert status == 2
    assert sentence in said


def test_a_preview_shows_each_copy_without_secrets(capsys: Capture) -> None:
    words = ("--users", "2", "--isolation", "none", "--dry", "--verbose", "--", "true", "--token", "abc", "{user}")
    status, said, _ = call(capsys, "exec", *words)
    assert status == 0
    assert said.count("supervise.py") == 2
    assert "abc" not in said
    assert "(hidden)' 1\n" in said or "(hidden) 1\n" in said
