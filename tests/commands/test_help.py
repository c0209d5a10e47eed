"""The help of a run: short by default, whole with --all. Read the golden file before you keep it."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands.calling import Capture, call
from cotenant.commands.run import parser
from golden import check_golden

GOLDEN = Path(__file__).with_name("golden")
RARE = ("--nnodes", "--ready-timeout", "--docker", "--reserve", "--strict", "--devices", "--pressure")


@pytest.fixture(autouse=True)
def of_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def help_of(capsys: Capture, *words: str) -> str:
    with pytest.raises(SystemExit, match="0"):
        call(capsys, *words)
    return capsys.readouterr().out


def test_the_help_of_a_run_is_short(capsys: Capture) -> None:
    shown = help_of(capsys, "help")
    check_golden(GOLDEN / "help.txt", shown)
    assert help_of(capsys, "--help") == help_of(capsys, "run", "--help") == shown
    assert not [flag for flag in RARE if flag in shown]


def test_all_of_the_help_has_every_flag_once_in_its_group(capsys: Capture) -> None:
    shown = help_of(capsys, "help", "--all")
    begin = [line.split()[0].rstrip(",") for line in shown.splitlines() if line.startswith("  -")]
    assert sorted(begin) == sorted({"-h", *parser().flags()} - {"--help"})
    assert shown.index("\nslices, further:\n") < shown.index("--reserve") < shown.index("\nseveral hosts:\n")


def test_other_commands_have_all_of_their_help_likewise(capsys: Capture) -> None:
    for command in ("doctor", "plan"):
        assert "--reserve" not in help_of(capsys, "help", command)
        assert "--reserve" in help_of(capsys, "help", command, "--all")
    assert help_of(capsys, "help", "list", "--all") == help_of(capsys, "list", "--help")
    assert help_of(capsys, "help", "fleet", "--all") == help_of(capsys, "fleet", "--help")


def test_findings_and_fields_of_records_have_their_meanings(capsys: Capture) -> None:
    assert call(capsys, "help", "findings", "drift")[0] == 0
    assert "Mann-Kendall" in call(capsys, "help", "findings", "drift")[1]
    assert "\nforeign_load (warning)\n" in call(capsys, "help", "findings")[1]
    assert "beside the other tenants" in call(capsys, "help", "records", "kept")[1]
    assert "Rates are compared only if it is equal." in call(capsys, "help", "records", "batch_size")[1]


@pytest.mark.parametrize(("topic", "word"), [("findings", "drfit"), ("records", "batch_sise")])
def test_an_unknown_name_has_the_closest_one(topic: str, word: str, capsys: Capture) -> None:
    status, _, said = call(capsys, "help", topic, word)
    assert status == 2
    assert "Did you mean" in said
