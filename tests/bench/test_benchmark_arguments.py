from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.small import Small
from cotenant.bench import Benchmark, flag, positional
from cotenant.bench.arguments import parse
from cotenant.errors import CotenantError


class Many(Benchmark):
    """One step = one of many things, 100 % of them."""

    ignored: ClassVar = {"--no-checks": 0, "--threshold": 1, "--pair": 2}

    lr: float = flag(0.01, "--lr", "-l", help="learning rate, up to 100 %")
    emsize: int = 10
    arch: Literal["resnet18", "resnet101"] = "resnet18"
    layers: tuple[int, ...] = flag((4, 2), "--layers", help="widths")
    upscale_factor: int = flag(2, "--upscale_factor")
    folder: Path | None = positional(None, "a folder", "--folder")
    second: str = positional("none", "a word")


def values(*argv: str) -> dict[str, Any]:
    return parse(Many, argv).values


def said(*argv: str, cls: type[Benchmark] = Many) -> str:
    with pytest.raises(CotenantError) as caught:
        parse(cls, argv)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_nothing_given() -> None:
    found = values()
    assert (found["batch_size"], found["lr"], found["layers"], found["second"]) == (64, 0.01, (4, 2), "none")
    assert parse(Many, []).ignored == []


@pytest.mark.parametrize("spelled", [["-b", "9"], ["-b9"], ["--batch-size", "9"], ["--batch-size=9"]])
@pytest.mark.parametrize("cls", [Many, Small])
def test_spellings_of_the_batch_size(cls: type[Benchmark], spelled: list[str]) -> None:
    assert parse(cls, spelled).values["batch_size"] == 9


@pytest.mark.parametrize("number", ["-1", "-1e-05", "-1.5e+3", "-.5", "-1.", "-2E7", "1e-05", "-0"])
@pytest.mark.parametrize("spelled", ["-l", "--lr"])
def test_negative_numbers_are_values(spelled: str, number: str) -> None:
    assert values(spelled, number)["lr"] == float(number)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_number_python_writes_is_a_value(number: float) -> None:
    assert values("--lr", repr(number))["lr"] == number


@pytest.mark.parametrize("words", [["256 256 128 64"], ["256", "256", "128", "64"], ["256 256", "128 64"]])
def test_a_list_as_words_or_as_one_quoted_word(words: list[str]) -> None:
    assert values("--layers", *words, "--lr", "1")["layers"] == (256, 256, 128, 64)


@given(st.permutations([["data/dir"], ["word"], ["-l", "2"], ["--no-cuda"], ["--threshold", "0.2"], ["--emsize=3"]]))
def test_positionals_stand_anywhere_between_flags(parts: list[list[str]]) -> None:
    found = parse(Many, [word for part in parts for word in part])
    first, second = (part[0] for part in parts if part[0] in ("data/dir", "word"))
    assert found.values["folder"] == Path(first)
    assert found.values["second"] == second
    assert (found.values["lr"], found.values["cuda"], found.values["emsize"]) == (2, False, 3)
    assert found.ignored == ["--threshold"]


def test_a_positional_may_be_given_as_a_flag() -> None:
    assert values("--folder", "x")["folder"] == Path("x")


@pytest.mark.parametrize(
    "argv, on", [([], True), (["--cuda"], True), (["--no-cuda"], False), (["--no-cuda", "--cuda"], True)]
)
def test_switches_go_both_ways(argv: list[str], on: bool) -> None:
    assert values(*argv)["cuda"] is on


def test_ignored_flags_are_accepted_with_their_values_and_listed() -> None:
    found = parse(Many, ["--pair", "1", "-2e-3", "--no-checks", "--threshold=0.2"])
    assert found.ignored == ["--no-checks", "--threshold", "--pair"]
    assert not any("ignored" in name for name in found.values)


@pytest.mark.parametrize(
    "argv, sentence",
    [
        (["--bach-size", "3"], "This benchmark knows no argument '--bach-size'. Did you mean '--batch-size'?"),
        (["--zzz"], "This benchmark knows no argument '--zzz'. --help lists its flags."),
        (["--batch", "3"], "knows no argument '--batch'"),
        (["a", "b", "c"], "knows no argument 'c'"),
        (["--batch-size", "x"], "argument --batch-size/-b: invalid int value: 'x'"),
        (["--batch-size"], "argument --batch-size/-b: expected one argument"),
        (["--arch", "vgg"], "invalid choice: 'vgg'"),
        (["--layers", "3 x"], "argument --layers: '3 x' are not all of type int"),
        (["--pair", "1"], "argument --pair: expected 2 arguments"),
        (["--cuda=1"], "argument --cuda"),
        (["--precision", "fp8"], "invalid choice: 'fp8'"),
    ],
)
def test_what_is_not_understood_is_said_in_a_sentence(argv: list[str], sentence: str) -> None:
    assert sentence in said(*argv)


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=8), max_size=5))
def test_no_command_line_ends_in_a_traceback(argv: list[str]) -> None:
    if {"-h", "--help", "--hel"} & set(argv):
        return
    with contextlib.suppress(CotenantError):
        assert parse(Many, argv).values.keys() == parse(Many, []).values.keys()


def test_help_tells_own_flags_first(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parse(Many, ["--help"])
    assert caught.value.code == 0
    shown = capsys.readouterr().out
    assert shown.startswith("usage: main.py [flags] [FOLDER] [SECOND]\n\nOne step = one of many things, 100 % of them.")
    assert re.search(r"--lr X, -l X +learning rate, up to 100 % \(default: 0.01\)\n", shown)
    assert re.search(r"--layers N \[N \.\.\.\] +widths \(default: 4 2\)\n", shown)
    assert re.search(r"--cuda, --no-cuda +use an accelerator where there is one \(default: yes\)\n", shown)
    assert re.search(r"--report PATH +a \.json file or a directory for the record\n", shown)
    order = [shown.index(part) for part in ("this benchmark:", "--lr", "every benchmark:", "--seed", "without effect:")]
    assert order == sorted(order)
    assert "SUPPRESS" not in shown
    assert "None" not in shown
