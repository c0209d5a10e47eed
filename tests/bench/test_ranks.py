"""How many processes a benchmark over several devices takes, and how they meet."""

import shlex

import pytest

from cotenant.bench.ranks import launcher_flags, ranks_of

FOUR = {"DEVICE_TOTAL": "4"}
ALONE = 0
"""No launcher: the benchmark itself."""


@pytest.mark.parametrize(
    ("words", "environ", "seen", "ranks"),
    [
        # flags, variables, devices that torch sees (None: it must not be asked), processes
        ("", FOUR, None, 4),
        ("--half 'a b'", {}, 8, 8),
        ("--half", {}, 0, 1),
        ("--devices 0", FOUR, None, 4),
        ("--devices 3 'a b'", FOUR, None, 3),
        ("--devices=2", FOUR, None, 2),
        ("--devices 1 --devices 2", FOUR, None, 2),
        ("--devices 4", {}, None, 4),
        ("--devices 0", {}, 8, 8),
        ("--devices=0", {}, 0, 1),
        ("--devices many", FOUR, None, ALONE),
        ("--devices", FOUR, None, ALONE),
        ("--devices 9", FOUR, None, ALONE),
        ("--parallel dp", FOUR, None, ALONE),
        ("--parallel=dp --devices 2", FOUR, None, ALONE),
        ("--parallel ddp --parallel dp", FOUR, None, ALONE),
        ("--parallel dp --parallel=fsdp", FOUR, None, 4),
        ("--network dp", FOUR, None, 4),
    ],
)
def test_processes_are_as_many_as_devices(words: str, environ: dict[str, str], seen: int | None, ranks: int) -> None:
    def count() -> int:
        assert seen is not None
        return seen

    assert ranks_of(shlex.split(words), environ, count) == ranks


def test_ranks_meet_where_the_runner_says_and_on_this_host_without_one() -> None:
    usual = ["--master_addr=127.0.0.1", "--master_port=29500"]
    assert launcher_flags(2, {}) == ["--nproc_per_node=2", *usual]
    elsewhere = {"MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29512"}
    assert launcher_flags(1, elsewhere)[1:] == ["--master_addr=10.0.0.1", "--master_port=29512"]
