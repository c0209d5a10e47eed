"""Using a word that was removed is an error with the sentence on what to use instead, and nothing has it any more."""

from __future__ import annotations

import importlib

import pytest

from cotenant.bench.arguments import parse
from cotenant.bench.contract import Benchmark
from cotenant.cli import main
from cotenant.commands import COMMANDS
from cotenant.errors import CotenantError, usage_error
from cotenant.removed import REMOVED, removed

WORDS = [key.split() for key in REMOVED]
FLAGS = [words[0] for words in WORDS if len(words) == 1 and words[0].startswith("--")]
COMMANDS_REMOVED = [words[0] for words in WORDS if len(words) == 1 and not words[0].startswith("--")]


def flags_of(command: str) -> dict[str, list[str]]:
    module = importlib.import_module(f"cotenant.commands.{command.replace('-', '_')}")
    return module.parser().flags()


def test_no_command_has_a_removed_word():
    for command in COMMANDS:
        for flag, choices in flags_of(command).items():
            assert not removed(flag, command), (command, flag)
            assert not [choice for choice in choices if removed(choice, flag)], (command, flag)
    assert not COMMANDS.keys() & REMOVED.keys()


@pytest.mark.parametrize("word", COMMANDS_REMOVED)
def test_a_removed_command_says_what_to_use(word, capsys):
    assert main([word, "--help"]) == 2
    assert REMOVED[word] in capsys.readouterr().err


@pytest.mark.parametrize("flag", FLAGS)
def test_a_removed_flag_says_what_to_use(flag, capsys):
    assert main([flag, "x"]) == 2
    assert REMOVED[flag] in capsys.readouterr().err
    with pytest.raises(CotenantError, match="was removed"):
        parse(Benchmark, [flag])


def test_a_flag_removed_from_one_command_is_looked_up_there():
    for words in WORDS:
        if len(words) == 2 and words[0] in COMMANDS:
            assert removed(words[1], words[0]) == REMOVED[" ".join(words)]


def test_a_removed_value_says_what_to_use():
    for words in WORDS:
        if len(words) == 2 and words[0].startswith("--"):
            error = usage_error(f"argument {words[0]}: invalid choice: '{words[1]}' (choose from 'a', 'b')", "")
            assert error.remedy == REMOVED[" ".join(words)]
