from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest

from bench.small import Small
from cotenant.bench import Benchmark, flag, positional
from cotenant.bench.arguments import declared
from cotenant.errors import CotenantError
from cotenant.results.record import Record

COMMON = (
    "batch_size cuda workers seed devices repeat number skip report precision half fp16 opt_level data compile "
    "channels_last cached_batch"
)


def make(**namespace: Any) -> type[Benchmark]:
    return type("Made", (Benchmark,), namespace)


def test_the_flags_every_benchmark_has() -> None:
    assert " ".join(declared(Benchmark)) == COMMON


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


def test_class_variables_are_no_flags() -> None:
    class Noted(Benchmark):
        item: ClassVar[str] = "thing"
        ignored: ClassVar = {"--old": 1}
        bare = 5

    assert " ".join(declared(Noted)) == COMMON


@pytest.mark.parametrize("name", sorted(set(Record.__struct_fields__) - {"devices", "skip"}))
def test_a_parameter_named_like_a_field_of_the_record_is_refused(name: str) -> None:
    with pytest.raises(CotenantError, match=f"Made declares the parameter '{name}', and every record has a field"):
        declared(make(__annotations__={name: int}, **{name: 1}))


@pytest.mark.parametrize("name", ["items", "step", "build", "batches", "main"])
def test_a_parameter_named_like_something_of_the_contract_is_refused(name: str) -> None:
    with pytest.raises(CotenantError, match="the contract has something of that name"):
        declared(make(__annotations__={name: int}, **{name: 1}))


def test_item_is_no_parameter() -> None:
    with pytest.raises(CotenantError, match="leave the annotation out"):
        declared(make(__annotations__={"item": str}, item="image"))


def test_a_parameter_needs_a_default() -> None:
    with pytest.raises(CotenantError, match=r"'depth' without a default. Write `depth: \.\.\. = <default>`"):
        declared(make(__annotations__={"depth": int}))


def test_devices_may_be_declared_anew() -> None:
    class Scaling(Benchmark):
        devices: int = flag(0, "--devices", help="0 means all")

    assert declared(Scaling)["devices"][1].default == 0


@pytest.mark.parametrize(
    "wrong, sentence",
    [
        ({"batch_size": 0}, "--batch-size must be at least 1, not 0."),
        ({"number": 0}, "--number must be at least 1"),
        ({"repeat": -3}, "--repeat must be at least 1, not -3."),
        ({"devices": 0}, "--devices must be at least 1"),
        ({"workers": -1}, "--workers must be at least 0, not -1."),
        ({"seed": -1}, "--seed must be at least 0"),
        ({"repeat": 5, "skip": 5}, "--skip 5 leaves none of 5 observations. Give a --skip smaller"),
        ({"skip": -1}, "--skip must be at least 0, not -1."),
        ({"half": True, "fp16": True}, "--half means half, --fp16 means fp16. Keep one of them, or say --precision"),
    ],
)
def test_impossible_values(wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises(CotenantError) as caught:
        Small(**wrong)
    assert sentence in str(caught.value)


class Numbers(Small):
    """Has whole numbers of its own, one of which may be negative and one of which means nothing below 4."""

    least: ClassVar[dict[str, int]] = {"waves": 4}

    widths: tuple[int, ...] = flag((8, 4), "--layers")
    offset: int = flag(-2)
    waves: int = 100
    rate: float = flag(0.5)


@pytest.mark.parametrize(
    "wrong, sentence",
    [
        ({"waves": 3}, "--waves must be at least 4, not 3."),
        ({"widths": (8, 0)}, "--layers must be at least 1, not 0."),
        ({"offset": -3}, "--offset must be at least -2, not -3."),
    ],
)
def test_numbers_of_a_benchmarks_own_that_mean_nothing(wrong: dict[str, Any], sentence: str) -> None:
    assert Numbers(waves=4, widths=(1,), offset=-2, rate=-1.0).waves == 4
    with pytest.raises(CotenantError) as caught:
        Numbers(**wrong)
    assert str(caught.value) == sentence


@pytest.mark.parametrize("repeat, skip", [(1, 0), (2, 0), (3, 1), (6, 2), (14, 4), (15, 5), (200, 5)])
def test_by_default_five_are_skipped_or_a_third(repeat: int, skip: int) -> None:
    assert Small(repeat=repeat).skip == skip


def test_every_kind_of_parameter() -> None:
    class Kinds(Benchmark):
        depth: int = 1
        rate: float | None = None
        arch: Literal["a", "b"] = "a"
        layers: tuple[int, ...] = (1, 2)
        folder: Path | None = positional(None, "a folder", "--folder")

    kinds = Kinds(depth=3)
    assert (kinds.depth, kinds.rate, kinds.arch, kinds.layers, kinds.folder) == (3, None, "a", (1, 2), None)
