"""summary.txt in the original's exact form."""

from __future__ import annotations

from pathlib import Path

import pytest

from cotenant.errors import CotenantError
from cotenant.results.store import append_summary, launch_line, total_line

GOLDEN = """\
[ 1/19][  /  ] PASSED |     0.27 MIN | ./regression/polynome/pytorch/run.sh
[ 2/19][ 1/ 4] FAILED |     0.93 MIN | ./time_sequence_prediction/lstm/pytorch/run.sh
Total Time  2817.82 s
"""


def test_lines_are_the_originals(tmp_path: Path) -> None:
    append_summary(tmp_path, launch_line(1, 19, 0, 4, 0.268, "./regression/polynome/pytorch/run.sh"))
    append_summary(tmp_path, launch_line(2, 19, 1, 4, 0.931, "./time_sequence_prediction/lstm/pytorch/run.sh"))
    append_summary(tmp_path, total_line(2817.8249))
    assert (tmp_path / "summary.txt").read_text() == GOLDEN


def test_lines_of_an_earlier_run_stay(tmp_path: Path) -> None:
    for position in (1, 2):
        append_summary(tmp_path, launch_line(position, 2, 12, 16, 123456.789, "x"))
    assert (tmp_path / "summary.txt").read_text() == (
        "[ 1/ 2][12/16] FAILED | 123456.79 MIN | x\n[ 2/ 2][12/16] FAILED | 123456.79 MIN | x\n"
    )


def test_a_command_stays_on_its_line(tmp_path: Path) -> None:
    append_summary(tmp_path, launch_line(1, 1, 0, 1, 0, "a  b\nTotal Time\x850 s \udcff"))
    assert (tmp_path / "summary.txt").read_text(encoding="utf-8").endswith("| a  b Total Time 0 s \\udcff\n")


def test_a_lost_directory_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(CotenantError, match=r"Nothing can be written to .*gone: No such file or directory\."):
        append_summary(tmp_path / "gone", "x")
