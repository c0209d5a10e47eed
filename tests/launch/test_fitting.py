"""`scaling` on machines of 1, 2, 3 and 8 devices: which of its cells are started, and what is said of the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from cotenant.commands.run import options_of, suite_parser
from cotenant.isolation.choose import Chosen
from cotenant.isolation.unenforced import NoIsolation
from cotenant.launch.start import Resolver
from machine.invented import device, machine


def resolver(count: int, *words: str) -> Resolver:
    """For a machine of so many devices."""
    given = suite_parser("", "", "").parse_words(["--jobs", "scaling", *words])
    there = machine(cores=count, devices=tuple(map(device, range(count))))
    return Resolver(options_of(given, (), there), there, Chosen(NoIsolation()))


@pytest.fixture(autouse=True)
def _paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BASE", str(tmp_path))


def test_n_devices_run_a_cell_for_each_k_up_to_n() -> None:
    for count, left_out in {1: "2-16", 2: "3-16", 3: "4-16", 8: "9-16"}.items():
        starts = resolver(count).starts()
        assert [start.label for start in starts] == [f"scaling.c{k}" for k in range(1, count + 1)]
        commands = [start.specs[0].command for start in starts]
        assert [words[words.index("--devices") + 1] for words in commands] == [str(k) for k in range(1, count + 1)]
        sentence = f"scaling: cells of --devices {left_out} are left out, as DEVICE_TOTAL is {count}."
        assert resolver(count).left_out() == (sentence,)
    assert (len(resolver(16).starts()), resolver(16).left_out()) == (16, ())
