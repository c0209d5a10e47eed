"""The error of a bad job file: one line with the place, the job, the mistake and the remedy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cotenant.errors import EXIT_USAGE, CotenantError
from cotenant.suite.jobfile import load

GOOD = {"name": "vae", "cmd": "x"}
JOB = json.dumps(GOOD)
MALFORMED = [
    ("[{'name': 1}]", "1:3", "expecting property name"),
    (f"[\n {JOB},\n {{\n  !}}]", "4:3", "expecting property name"),
    (f"[{JOB} {JOB}]", "1:30", "a comma or ']' is missing"),
    ("[", "1:2", "expecting value"),
    (f"[\n{JOB},\n]", "2:28", "a comma after the last job"),
    (f"[{JOB}]\n[]", "2:1", "text after the list's closing bracket"),
    ('[{"name": "a\nb"}]', "1:13", "invalid control character"),
]
NOT_JOBS = [
    ("", ":1:1: the file is empty."),
    ("\n{}", ":2:1: the top level is an object, not a list."),
    (" []", ":1:2: the list is empty."),
    (f"[{JOB},\n 3]", ":2:2: entry 2 is the number 3, not an object."),
]
NUMBERS = [
    ("NaN", "NaN is no JSON number."),
    ("1e999", "the number 1e999 is too large."),
    ("18446744073709551616", "the number 18446744073709551616 needs more than 64 bits."),
    ("9" * 10_000, "needs more than 64 bits."),
]
ENTRIES: list[tuple[dict[str, object], str]] = [
    ({"cmd": "x"}, "job 1: the key 'name' is missing."),
    ({"name": "vae"}, "job 'vae': the key 'cmd' is missing."),
    ({"nmae": "vae", "cmd": "x"}, "unknown key 'nmae'. Did you mean 'name'? A job's keys are name, cmd,"),
    ({"name": "vae", "cmd": "x", "group": "all"}, "unknown key 'group'. Did you mean 'cgroup'?"),
    ({"name": 3, "cmd": "x"}, "job 1: 'name' is the number 3. It is a string."),
    ({"name": "vae", "cmd": None}, "'cmd' is null. It is a string."),
    ({"name": "vae", "cmd": " "}, "'cmd' is empty."),
    ({"name": "vae", "cmd": "$BSAE/x"}, "'cmd': unknown variable 'BSAE' in '$BSAE/x'. Did you mean 'BASE'?"),
]
NAMES = [
    ("", "'name' is empty"),
    ("a/b", "slash"),
    ("a\\b", "backslash"),
    (".hidden", "dot"),
    ("a\nb", "cannot be printed"),
    ("\u2603" * 34, "longer than 100 bytes"),
]
ARGS: list[tuple[object, str]] = [
    ([], "'args' is a list. It is an object"),
    ({"--x": True}, "'--x': a value is true. Write \"\" for a bare flag."),
    ({"--x": False}, "'--x': a value is false. Leave the flag out."),
    ({"--x": None}, "'--x': a value is null. Leave the flag out."),
    ({"--x": {}}, "'--x': a value is an object. Write numbers and strings only."),
    ({"--x": []}, "'--x': the list of values is empty."),
    ({"": ""}, "'': an argument's name is empty."),
    ({"lr": 0.1}, "'lr': an argument without a dash is a positional, and its value is \"\", not the number"),
    ({"lr": ["a"]}, "not a list. '--lr' would be a flag."),
    ({"--x": "'a"}, "'--x': \"'a\" cannot be split as a shell would: no closing quotation."),
    ({"--x": "$RUN_IDD"}, "'--x': unknown variable 'RUN_IDD' in '$RUN_IDD'. Did you mean 'RUN_ID'? Known"),
    ({"--x": "'$ BASE'"}, "'--x': a '$' without a name after it in '$ BASE'."),
    ({"$DATA/x": ""}, "'$DATA/x': unknown variable 'DATA'"),
    ({f"--{i}": [1, 2] for i in range(40_000)}, "its lists multiply to more than 10000 cells."),
]
FIELDS: list[tuple[dict[str, object], str]] = [
    ({"cgroup": "students"}, "'cgroup' is the string 'students'. Did you mean 'student'? It is 'student' or"),
    ({"cgroup": None}, "'cgroup' is null."),
    ({"weight": 0}, "'weight' is the number 0. It is a number above 0"),
    ({"weight": True}, "'weight' is true."),
    ({"env": ["A=1"]}, "'env' is a list. It is an object"),
    ({"env": {"A B": "1"}}, "'env' 'A B': this is no variable's name."),
    ({"env": {"É": "1"}}, "this is no variable's name."),
    ({"env": {"A": True}}, "'env' 'A': the value is true. Write a string or a number."),
    ({"env": {"A": "$HOME"}}, "'env' 'A': unknown variable 'HOME'"),
    ({"env": {"PYTHONPATH": "x"}}, "'env' 'PYTHONPATH': this variable can run other code before the benchmark"),
    ({"env": {"RUN_ID": "7"}}, "'env' 'RUN_ID': the runner sets this variable itself."),
]


def refused(path: Path) -> str:
    with pytest.raises(CotenantError) as caught:
        load(path)
    assert caught.value.exit_status == EXIT_USAGE
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(str(path))
    return str(caught.value)[len(str(path)) :]


def test_missing_file(tmp_path):
    assert refused(tmp_path / "nothing.json") == ": there is no such job file."
    (tmp_path / "baselines.json").write_text("[]")
    assert "Did you mean 'baselines.json'?" in refused(tmp_path / "baseline.json")


def test_what_cannot_be_read(written, tmp_path, monkeypatch):
    assert ": this is a directory." in refused(tmp_path)
    for name in ("jobs.json/inside", "x" * 300, "a\0b"):
        assert ": the job file cannot be read: " in refused(written("[]").parent / name)

    def deny(path: Path, *, follow: bool) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    path = written("[]")
    monkeypatch.setattr("cotenant.suite.jobfile.content_of", deny)
    assert ": the job file cannot be read: Permission denied. Check" in refused(path)
    monkeypatch.undo()
    assert refused(written(b'[\n  "caf\xe9"]')).startswith(":2:7: this byte is not UTF-8. ")


def test_deep_nesting(written):
    for value in ("[" * 100_000, '{"a":' * 100_000, "[" * 100_000 + "]" * 100_000):
        assert ":1:36: lists or objects are nested too deeply." in refused(written(f"[{JOB},      {value}"))
        assert "nested too deeply" in refused(written(value))
    value = "[" * 400 + "]" * 400
    message = refused(written(f'[{{"name": "vae", "cmd": "x", "args": {{"--x": {value}}}}}]'))
    assert "'--x': a value is a list." in message


def test_texts_that_no_program_can_be_given(written):
    for entry in ('{"name": "%s"}', '{"%s": 1}', '{"args": {"--x": ["a", "%s"]}}'):
        for bad in ("\\u0000", "\\ud800", "\\udcff"):
            message = refused(written(f"[{entry % bad}]"))
            assert bad.replace("\\u0000", "\\x00") in message
            assert "holds a NUL or half of a surrogate pair." in message


def test_the_refusal_names_the_line_of_the_wrong_job(written):
    bad = '{"name": "gan",\n  "cmd": "x",\n  "args": {"--lr": null}}'
    assert refused(written(f"[{JOB},\n\n  {bad}]")).startswith(":3:3: job 'gan': '--lr': a value is null.")
    jobs = [{"name": "a", "cmd": "x", "args": {"--x": [1, 2]}}, {"name": "a.c2", "cmd": "x"}]
    assert "job 'a.c2' has the name of a cell of 'a'. Rename one." in refused(written(json.dumps(jobs)))


def test_long_texts_are_shortened(written):
    assert len(refused(written(json.dumps([{"name": "a", "cmd": "x", "k" * 100_000: 1}])))) < 300


def test_text_that_is_no_list_of_jobs_is_refused_at_its_place(written):
    for text, place, reason in MALFORMED:
        message = refused(written(text))
        assert message.startswith(f":{place}: not valid JSON: "), text
        assert reason in message, text
    for text, sentence in NOT_JOBS:
        assert refused(written(text)).startswith(sentence), text


def test_numbers_that_json_or_a_record_cannot_hold(written):
    for number, sentence in NUMBERS:
        message = refused(written(f'[\n  {{"name": "vae", "cmd": "x", "args": {{"--x": {number}}}}}]'))
        assert message.startswith(":2:3: "), number
        assert sentence in message, number
        assert len(message) < 250


def test_every_wrong_entry_is_refused_at_its_place(written):
    rows = [
        *((entry, ":1:2: job ", sentence) for entry, sentence in ENTRIES),
        *((GOOD | {"name": name}, ":1:2: job ", reason) for name, reason in NAMES),
        *((GOOD | {"args": args}, ":1:2: job 'vae': ", sentence) for args, sentence in ARGS),
        *((GOOD | field, ":1:2: job 'vae': ", sentence) for field, sentence in FIELDS),
    ]
    for entry, place, sentence in rows:
        message = refused(written(json.dumps([entry])))
        assert message.startswith(place), entry
        assert sentence in message, entry
    twice = {"name": '{"name": "a", "cmd": "x", "name": "b"}', "--lr": '{"args": {"--lr": 1, "--lr": 2}}'}
    for key, text in twice.items():
        assert f":1:2: the key '{key}' stands twice in one object." in refused(written(f"[{text}]"))
