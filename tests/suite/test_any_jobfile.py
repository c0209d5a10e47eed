"""No content of a job file shows a traceback, and a job file that is accepted can be run."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from cotenant.errors import CotenantError
from cotenant.suite.cells import arguments, expand
from cotenant.suite.jobfile import Suite, load
from cotenant.suite.variables import VARIABLES

VALUES = {name: f"<{name} value>" for name in VARIABLES}

texts = st.one_of(
    st.text(max_size=12),
    st.sampled_from(["--lr", "x", "$BASE/y", "$", "${", "$NO", "'", "vae", "vae-2", "student", "a\\", "--"]),
)
scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), texts)
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=8
)
values = st.one_of(st.integers(-9, 9), st.floats(allow_nan=False, allow_infinity=False), texts)
args = st.dictionaries(texts, values | st.lists(values, max_size=3), max_size=4)
almost_jobs = st.fixed_dictionaries(
    {"name": texts, "cmd": texts},
    optional={
        "args": args | anything,
        "cgroup": st.sampled_from(["student", "all", "al"]),
        "weight": scalars,
        "timeout": scalars,
        "env": st.dictionaries(st.sampled_from(["A", "B C", "BASE"]), scalars, max_size=2),
    },
)


def outcome(content: bytes) -> Suite | CotenantError:
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        file.write(content)
        file.flush()
        try:
            return load(Path(file.name))
        except CotenantError as error:
            refusal = error
    assert "\n" not in str(refusal)
    assert refusal.sentence.startswith(file.name)
    return refusal


def check_runnable(suite: Suite) -> None:
    labels: list[str] = []
    for job in suite.jobs:
        for cell in expand(job):
            labels.append(cell.label)
            words = arguments(cell, VALUES, (), 7)
            assert "\0" not in "".join(words)
            assert "".join(words).encode()
            assert words[-2:] == ["--seed", "7"]
    assert len(set(labels)) == len(labels)
    assert all("/" not in label and len(label.encode()) < 120 for label in labels)


@given(st.binary(max_size=200) | st.text(alphabet='[]{}",:\\ \n-+.0123456789eEtrufalsn$', max_size=80).map(str.encode))
def test_any_bytes(content):
    outcome(content)


@settings(max_examples=300)
@given(st.lists(almost_jobs, min_size=1, max_size=3))
def test_anything_like_jobs(document):
    result = outcome(json.dumps(document).encode())
    if isinstance(result, Suite):
        check_runnable(result)


good_words = st.lists(st.sampled_from(["a", "'b c'", "$BASE/d", "-1", "''"]), max_size=3).map(" ".join)
good_values = st.integers(-9, 9) | st.floats(allow_nan=False, allow_infinity=False) | good_words
good_args = st.dictionaries(
    st.sampled_from(["--lr", "-b", "--size"]), good_values | st.lists(good_values, min_size=1, max_size=3)
)
good_jobs = st.fixed_dictionaries(
    {"name": st.sampled_from(["vae", "vae-2", "vae-3", "gan"]), "cmd": st.just("$BASE/run.sh"), "args": good_args},
    optional={"cgroup": st.sampled_from(["student", "all"]), "weight": st.integers(1, 9)},
)


@given(st.lists(good_jobs, min_size=1, max_size=6), st.sampled_from([None, 1]))
def test_every_good_file_is_accepted_and_keeps_its_content(document, indent):
    result = outcome(json.dumps(document, indent=indent).encode())
    check_runnable(result)
    for entry, job in zip(document, result.jobs, strict=True):
        assert (entry["name"], entry["cmd"]) == (job.name, job.cmd)
        assert {k: v if isinstance(v, list) else [v] for k, v in entry["args"].items()} == {
            key: list(found) for key, found in job.args
        }
