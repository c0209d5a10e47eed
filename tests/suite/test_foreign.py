"""A command as a person types it: its name, its copies, its identity."""

from __future__ import annotations

import pytest

from cotenant.suite.foreign import Foreign


@pytest.mark.parametrize(
    ("words", "stem"),
    [
        ("python train.py --lr 1e-3", "train"),
        ("/usr/bin/python3 -u src/fit.py", "fit"),
        ("torchrun --nproc-per-node 2 train.py", "train"),
        ("python -m package.main", "package.main"),
        ("./run.sh", "run"),
        ("sleep 1", "sleep"),
        ("python -c pass", "python"),
    ],
)
def test_a_job_is_called_like_its_script(words: str, stem: str) -> None:
    assert Foreign(tuple(words.split())).stem == stem


def test_copies_of_a_program_share_an_identity_without_secrets() -> None:
    foreign = Foreign(("python", "train.py", "--out", "runs/{uid}/{user}", "--hf-token", "abc"), items=64)
    assert foreign.words_of(1, 4) == ["python", "train.py", "--out", "runs/4/1", "--hf-token", "abc"]
    assert foreign.arguments == {
        "program": "python train.py --out 'runs/{uid}/{user}' --hf-token '(hidden)'",
        "items_a_step": 64,
    }
