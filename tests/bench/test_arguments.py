"""Typed attributes become flags, and command lines their values."""

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
from cotenant.bench.arguments import declared, parse
from cotenant.errors import CotenantError
from cotenant.results.record import Record

COMMON = (
    "batch_size cuda workers seed devices repeat number skip report precision half fp16 opt_level data compile "
    "channels_last cached_batch deterministic"
)


def make(**namespace: Any) -> type[Benchmark]:
    return type("Made", (Benchmark,), namespace)


def test_class_variables_declare_no_flags() -> None:
    class Noted(Benchmark):
        item: ClassVar[str] = "thing"
        ignored: ClassVar = {"--old": 1}
        bare = 5

    assert " ".join(declared(Noted)) == COMMON


def test_a_new_default_keeps_the_spellings_and_the_help() -> None:
    class Plain(Benchmark):
        batch_size: int = 7
        workers = 3

    class Below(Plain):
        batch_size = 8

    before, after = declared(Benchmark)["batch_size"][1], declared(Below)["batch_size"][1]
    assert (after.default, after.names, after.help) == (8, before.names, before.help)
    assert declared(Below)["workers"][1].default == 3
    assert declared(Below)["workers"][1].names == ("--workers", "-j")
    assert Below().batch_size == 8


def test_taken_parameter_names_are_refused() -> None:
    names = dict.fromkeys(
        set(Record.__struct_fields__) - {"devices", "skip"}, "which is the name of a field of every record"
    )
    names |= dict.fromkeys(["items", "step", "build", "batches", "item"], "which is a name of the contract")
    for name, problem in names.items():
        with pytest.raises(CotenantError, match=f"Made declares the parameter '{name}', {problem}"):
            declared(make(__annotations__={name: int}, **{name: 1}))
    with pytest.raises(CotenantError, match=r"'depth', without a default. Write `depth: \.\.\. = <default>`"):
        declared(make(__annotations__={"depth": int}))


class Numbers(Small):
    """Adds whole numbers, of which `offset` may be negative and `waves` is at least 4."""

    widths: tuple[int, ...] = flag((8, 4), "--layers")
    offset: int = flag(-2, least=-2)
    waves: int = flag(100, least=4)
    rate: float = flag(0.5)


def test_impossible_values() -> None:
    assert Numbers(waves=4, widths=(1,), offset=-2, rate=-1.0).waves == 4
    wrongs: tuple[tuple[dict[str, Any], str], ...] = (
        ({"batch_size": 0}, "--batch-size must be at least 1, not 0."),
        ({"number": 0}, "--number must be at least 1"),
        ({"repeat": -3}, "--repeat must be at least 1, not -3."),
        ({"devices": 0}, "--devices must be at least 1"),
        ({"workers": -1}, "--workers must be at least 0, not -1."),
        ({"seed": -1}, "--seed must be at least 0"),
        ({"repeat": 5, "skip": 5}, "--skip 5 leaves none of 5 observations. Give a --skip smaller"),
        ({"skip": -1}, "--skip must be at least 0, not -1."),
        ({"half": True, "fp16": True}, "--half means half, --fp16 means fp16. Keep one of them, or say --precision"),
        ({"waves": 3}, "--waves must be at least 4, not 3."),
        ({"widths": (8, 0)}, "--layers must be at least 1, not 0."),
        ({"offset": -3}, "--offset must be at least -2, not -3."),
    )
    for wrong, sentence in wrongs:
        with pytest.raises(CotenantError) as caught:
            Numbers(**wrong)
        assert sentence in str(caught.value)


def test_by_default_five_are_skipped_or_a_third() -> None:
    for repeat, skip in ((1, 0), (2, 0), (3, 1), (6, 2), (14, 4), (15, 5), (200, 5)):
        assert Small(repeat=repeat).skip == skip


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


def test_spellings() -> None:
    parsed = parse(Many, [])
    assert [parsed.values[name] for name in ("batch_size", "lr", "layers", "second")] == [64, 0.01, (4, 2), "none"]
    assert parsed.ignored == []
    for cls in (Many, Small):
        for spelled in (["-b", "9"], ["-b9"], ["--batch-size", "9"], ["--batch-size=9"]):
            assert parse(cls, spelled).values["batch_size"] == 9
    for number in ("-1", "-1e-05", "-1.5e+3", "-.5", "-1.", "-2E7", "1e-05", "-0"):
        assert values("-l", number)["lr"] == values("--lr", number)["lr"] == float(number)
    for words in (["256 256 128 64"], ["256", "256", "128", "64"], ["256 256", "128 64"]):
        assert values("--layers", *words, "--lr", "1")["layers"] == (256, 256, 128, 64)
    assert values("--folder", "x")["folder"] == Path("x")
    for argv, on in (([], True), (["--cuda"], True), (["--no-cuda"], False), (["--no-cuda", "--cuda"], True)):
        assert values(*argv)["cuda"] is on
    for argv, mode in (
        (["--no-compile", "max-autotune"], False),
        (["--compile"], "default"),
        (["--compile", "data/dir"], "default"),
        (["--compile", "max-autotune"], "max-autotune"),
        (["--compile=reduce-overhead", "data/dir"], "reduce-overhead"),
    ):
        assert values(*argv)["compile"] == mode


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_number_python_writes_is_a_value(number: float) -> None:
    assert values("--lr", repr(number))["lr"] == number


@given(st.permutations([["data/dir"], ["word"], ["-l", "2"], ["--no-cuda"], ["--threshold", "0.2"], ["--emsize=3"]]))
def test_positionals_stand_anywhere_between_flags(parts: list[list[str]]) -> None:
    parsed = parse(Many, [word for part in parts for word in part])
    first, second = (part[0] for part in parts if part[0] in ("data/dir", "word"))
    assert parsed.values["folder"] == Path(first)
    assert parsed.values["second"] == second
    assert (parsed.values["lr"], parsed.values["cuda"], parsed.values["emsize"]) == (2, False, 3)
    assert parsed.ignored == ["--threshold"]


def test_ignored_flags_are_accepted_and_listed() -> None:
    found = parse(Many, ["--pair", "1", "-2e-3", "--no-checks", "--threshold=0.2"])
    assert found.ignored == ["--no-checks", "--threshold", "--pair"]
    assert not any("ignored" in name for name in found.values)


def test_what_is_not_understood_is_one_sentence() -> None:
    for argv, sentence in (
        (["--bach-size", "3"], "This benchmark has no argument '--bach-size'. Did you mean '--batch-size'?"),
        (["--model", "x"], "--jobs scaling takes --model."),
        (["--zzz"], "This benchmark has no argument '--zzz'. --help lists its flags."),
        (["--batch", "3"], "has no argument '--batch'"),
        (["a", "b", "c"], "has no argument 'c'"),
        (["--batch-size", "x"], "--batch-size/-b: 'x' is no whole number. --help lists its flags."),
        (["--batch-size"], "--batch-size/-b: a value is missing behind it."),
        (["--arch", "vgg"], ", not 'vgg'."),
        (["--layers", "3 x"], "--layers: '3 x' is no whole number."),
        (["--pair", "1"], "--pair: expected 2 arguments"),
        (["--cuda=1"], "--cuda"),
        (["--compile=slow"], "--compile takes default, reduce-overhead, "),
        (["--precision", "fp8"], ", not 'fp8'."),
    ):
        with pytest.raises(CotenantError) as caught:
            parse(Many, argv)
        assert sentence in str(caught.value)
        assert "\n" not in str(caught.value)


FLAGS = st.sampled_from(["--lr", "-b", "--layers", "--arch", "--folder", "--cuda", "--pair", "--precision", "--"])
WORDS = FLAGS | st.sampled_from(["3", "1 2"]) | st.text(st.characters(codec="utf-8"), max_size=8)


@pytest.mark.slow
@given(st.lists(WORDS | st.builds("{}={}".format, FLAGS, WORDS), max_size=5))
def test_no_command_line_ends_in_a_traceback(argv: list[str]) -> None:
    if {"-h", "--help"} & set(argv):
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
    assert re.search(r"--cuda, --no-cuda +use an accelerator if there is one \(default: yes\)\n", shown)
    assert re.search(r"--report PATH +a \.json file or a directory for the record\n", shown)
    order = [shown.index(part) for part in ("this benchmark:", "--lr", "every benchmark:", "--seed", "without effect:")]
    assert order == sorted(order)
    assert "SUPPRESS" not in shown
    assert "None" not in shown
