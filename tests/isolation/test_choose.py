"""Which backend serves, and what is said where a better one cannot be had."""

from __future__ import annotations

from pathlib import Path

import pytest

from cotenant.errors import EXIT_NOT_ISOLATED, CotenantError, IsolationError
from cotenant.isolation.choose import CHOICES, choose_backend
from cotenant.isolation.v1 import NEEDED


@pytest.fixture
def mounts(tmp_path: Path) -> dict[str, Path]:
    for name in NEEDED:
        (tmp_path / name).mkdir()
    return {name: tmp_path / name for name in NEEDED}


@pytest.mark.parametrize(
    ("asked", "name"),
    [("auto", "v1"), ("require", "v1"), ("v1", "v1"), ("affinity", "affinity"), ("none", "none")],
)
def test_where_v1_can_be_had(asked: str, name: str, mounts: dict[str, Path]) -> None:
    chosen = choose_backend(asked, mounts, None)
    assert chosen.backend.name == name
    assert chosen.findings == ()


@pytest.mark.parametrize(("asked", "name"), [("affinity", "affinity"), ("none", "none")])
def test_what_needs_no_cgroups(asked: str, name: str) -> None:
    chosen = choose_backend(asked, {}, None)
    assert (chosen.backend.name, chosen.findings) == (name, ())


def test_auto_degrades_and_says_why(mounts: dict[str, Path]) -> None:
    del mounts["memory"]
    chosen = choose_backend("auto", mounts, None)
    assert chosen.backend.name == "affinity"
    (finding,) = chosen.findings
    assert finding.rule == "degraded"
    assert finding.sentence.endswith("by cgroups here: the v1 controller memory is not mounted.")
    assert "--isolation require" in finding.remedy


@pytest.mark.parametrize(
    ("asked", "words"), [("require", "Isolation is required, but"), ("v1", "Isolation by v1 was asked for, but")]
)
def test_what_was_required_is_had_or_an_error(asked: str, words: str) -> None:
    with pytest.raises(
        IsolationError, match=f"^{words} the v1 controller cpuset is not mounted. Run as root"
    ) as caught:
        choose_backend(asked, {}, None)
    assert caught.value.exit_status == EXIT_NOT_ISOLATED


@pytest.mark.parametrize("asked", CHOICES)
def test_a_bad_base_is_an_error_whatever_was_asked(asked: str, mounts: dict[str, Path]) -> None:
    with pytest.raises(CotenantError, match=r"^--cgroup-base '\.\./x' is no path"):
        choose_backend(asked, mounts, "../x")
