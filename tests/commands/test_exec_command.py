"""`exec`: calls that it refuses before anything starts."""

from __future__ import annotations

import json
import shutil

from commands.calling import Capture, call, check_refusals

REFUSED = {
    "": "There is no command after --.",
    "-- no-such-program": "'no-such-program' is no program that can be run.",
    "--runs 0 -- true": "--runs 0 is no number of runs.",
    "--ready-line x -- true": "Add --count-line REGEX.",
    "--count-line '(' -- true": "'(' is no regular expression: ",
    "--items none -- true": "'none' is no number of items",
    "--uid -1 -- true": "--uid -1 is negative.",
    f"--uid {10**18} -- true": "has more than 18 digits.",
    "--repetitions 0 -- true": "--repetitions 0 is no number of repetitions.",
    "--as a/b -- true": "It becomes part of file names",
    "true": "'true' is no flag",
    "-- true --- false": "--- stands between two commands, and there is no --duet.",
    "--duet -- true": "--duet compares two, and there is no --- after -- between them.",
    "--duet -- a --- b --- c": "there is more than one --- after -- between them.",
    "--duet -- true ---": "--duet compares two commands, and one side of --- has none.",
    "--duet -- true --- no-such-program": "'no-such-program' is no program that can be run.",
    "--duet --slices 1 -- a --- b": "--duet runs two users by turns, and --slices asks for something else.",
}


def test_a_wrong_call_is_refused_in_a_sentence(capsys: Capture) -> None:
    check_refusals(capsys, "exec", REFUSED)


def test_a_preview_shows_each_copy_without_secrets(capsys: Capture) -> None:
    words = ("--users", "2", "--isolation", "none", "--dry", "--verbose", "--", "true", "--token", "abc", "{user}")
    status, said, _ = call(capsys, "exec", *words)
    assert status == 0
    assert said.count("supervise.py") == 2
    assert "abc" not in said
    assert "(hidden)' 1\n" in said or "(hidden) 1\n" in said


def test_a_duet_runs_two_copies_with_their_own_arguments(capsys: Capture) -> None:
    words = ("--users", "2", "--isolation", "none", "--duet", "--dry", "--verbose", "--json")
    commands = ("true", "old", "{user}", "---", "true", "--token", "abc", "{user}")
    status, said, _ = call(capsys, "exec", *words, "--", *commands)
    assert status == 0
    (launch,) = json.loads(said)["launches"]
    assert launch["label"] == "true.duet"
    behind = [tenant["command"][tenant["command"].index(shutil.which("true")) + 1 :] for tenant in launch["tenants"]]
    assert behind == [["old", "0"], ["--token", "(hidden)", "1"], ["old", "2"], ["--token", "(hidden)", "3"]]
