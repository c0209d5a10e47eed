"""Through the real runner, two tenants a launch: honest programs pass two times of two, and lies are found."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tenants.honest import KINDS
from tenants.lies import LIES
from tenants.suites import Suites, errors, job

SOME = 6
TIMES = 2
AT_LEAST_S = 2
"""Of a third of a second a busy host takes the 3 % that tenants need not have in common as it starts one of them."""


def in_parts(kinds: Iterable[str]) -> list[tuple[str, ...]]:
    every = sorted(kinds)
    return [tuple(every[first : first + SOME]) for first in range(0, len(every), SOME)]


def errors_of_all(suites: Suites, file: str, kinds: tuple[str, ...]) -> dict[str, list[set[str]]]:
    """Launch each of these programs with two tenants, several times; return the errors of all records by program."""
    # One thread each: several that wait for each other on a busy machine take minutes.
    jobs = [job("programs.sh", file, kind, "--repeat", 12, name=kind, env={"OMP_NUM_THREADS": "1"}) for kind in kinds]
    for uid in range(TIMES):
        suites.run(jobs, "--users", 2, "--uid", uid, "--at-least", AT_LEAST_S, limit_s=500, status=0)
    found: dict[str, list[set[str]]] = {kind: [] for kind in kinds}
    for record in suites.records():
        found[record["name"]].append(errors(record))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kinds", in_parts(KINDS), ids="-".join)
def test_honest_programs_are_let_pass(kinds: tuple[str, ...], loose: Suites) -> None:
    assert errors_of_all(loose, "honest", kinds) == {kind: [set()] * 2 * TIMES for kind in kinds}


@pytest.mark.slow
@pytest.mark.parametrize("kinds", in_parts(LIES.keys()), ids="-".join)
def test_lies_are_invalid(kinds: tuple[str, ...], loose: Suites) -> None:
    found = errors_of_all(loose, "lies", kinds)
    assert [kind for kind in kinds if not all(found[kind])] == []
