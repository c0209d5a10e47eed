from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench.small import Small
from cotenant.bench import session
from cotenant.bench.session import argument_table, observation_line, record_block

GOLDEN = Path(__file__).parent / "golden" / "printed.txt"


def test_printed_form() -> None:
    arguments = {
        "batch_size": 32,
        "arch": "resnet18",
        "layers": (256, 128),
        "report": None,
        "a_name_longer_than_thirty_columns": 1,
    }
    lines = [
        argument_table(arguments),
        observation_line(0, 15, 52.2, 7.03456),
        observation_line(1, 15, 48.6, None),
        observation_line(13, 15, 3.6, 25123.40625),
        observation_line(14, 15, 0.0, float("nan")),
        record_block({"batch_size": 32, "batch_loss": [7.5, None]}),
    ]
    assert "\n".join(lines) + "\n" == GOLDEN.read_text()


def test_a_run_prints_this_form_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert session.main(Small, ["--repeat", "3"]) == 0
    rule = "-" * 80
    first, table, observations, record, end = capsys.readouterr().out.split(rule + "\n")
    assert first == end == ""
    assert table.startswith(f"{'batch_size':>30}: 4\n")
    assert all(re.fullmatch(r" *\w+: \S.*", line) for line in table.splitlines())
    line = r"\[  {}/  3\] \| ETA:   0\.\d\d min \| Batch Loss [ \d]{{2}}\d\.\d{{4}}"
    shown = observations.splitlines()
    assert len(shown) == 3
    assert all(re.fullmatch(line.format(index), text) for index, text in enumerate(shown))
    assert record.startswith('{\n "batch_size": 4,\n')
