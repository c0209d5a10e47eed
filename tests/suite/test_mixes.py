"""Mixes of a job file: the mixes that its entries become, and entries that are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cotenant.errors import CotenantError
from cotenant.suite.jobfile import Suite, load, select
from cotenant.suite.mixes import mix_named, pairs_named

JOBS: list[dict[str, Any]] = [
    {"name": "convnet", "cmd": "./a.sh", "cgroup": "student"},
    {"name": "wlm", "cmd": "./b.sh", "cgroup": "student", "args": {"--batch-size": [8, 16]}},
    {"name": "whole", "cmd": "./c.sh", "cgroup": "all"},
]


def read(folder: Path, **mix: Any) -> Suite:
    path = folder / "jobs.json"
    path.write_text(json.dumps([*JOBS, {"name": "lab", "mix": ["convnet", "wlm.c2"], "cgroup": "student"} | mix]))
    return load(path)


def test_a_mix_repeats_its_jobs_over_the_tenants(tmp_path: Path) -> None:
    suite = read(tmp_path, timeout=60)
    (lab,) = suite.mixes
    assert [job.name for job in suite.jobs] == ["convnet", "wlm", "whole"]
    assert (lab.name, lab.timeout_s) == ("lab", 60.0)
    assert lab.of_tenants(5) == ("convnet", "wlm.c2", "convnet", "wlm.c2", "convnet")
    assert select(suite.entries, ["la*"]) == (lab,)
    assert lab not in select(suite.entries, (), ["lab"])


@pytest.mark.parametrize(
    ("mix", "sentence", "remedy"),
    [
        ({"mix": ["convnett"]}, "mix 'lab': there is no job 'convnett'.", "Did you mean 'convnet'?"),
        ({"mix": ["wlm"]}, "mix 'lab': 'wlm' has several cells.", "Name one of them: wlm.c1, wlm.c2."),
        ({"mix": ["whole"]}, "mix 'lab': 'whole' is of the group 'all' and owns the machine.", "'student'"),
        ({"mix": "convnet"}, "'mix' is", "It is a list of texts"),
        ({"cgroup": "all"}, "'cgroup' of a mix is 'student'", "Leave it out."),
        ({"timeoutt": 3}, "an entry with 'mix' has no key 'timeoutt'.", "Did you mean 'timeout'?"),
        ({"name": "convnet"}, "'convnet' is the name of a mix and of another entry.", "Rename one."),
        ({"cmd": "./a.sh"}, "unknown key 'mix'", "A job's keys are"),
    ],
)
def test_a_wrong_mix_is_refused(tmp_path: Path, mix: dict[str, Any], sentence: str, remedy: str) -> None:
    with pytest.raises(CotenantError) as refusal:
        read(tmp_path, **mix)
    assert sentence in refusal.value.sentence
    assert remedy in refusal.value.remedy


def test_flags_name_a_mix_and_every_pair_once() -> None:
    assert (mix_named("a, b,a").name, mix_named("a,b,a").labels) == ("a+b+a", ("a", "b", "a"))
    pairs = pairs_named("a,b,c,a")
    assert [mix.name for mix in pairs.apart] == ["a+a", "a+b", "a+c", "b+b", "b+c", "c+c"]
    assert pairs.labels == ("a", "b", "c", "a", "b", "c"), "who is beside itself is there twice"
    with pytest.raises(CotenantError, match="all users would run 'a'"):
        mix_named("a")
    for text in ("", " , "):
        with pytest.raises(CotenantError, match="names no job"):
            mix_named(text)
