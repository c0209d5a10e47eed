"""Jobs become cells, cells become arguments."""

from __future__ import annotations

import argparse
import math
from typing import Literal

from hypothesis import given
from hypothesis import strategies as st

from cotenant.suite.cells import SWEEPING, Job, JobCell, arguments, expand, fitting, over_devices, swept
from cotenant.suite.variables import Value, flag_name, is_flag

VALUES = {"OUTPUT_DIRECTORY": "/out put", "JOB_FILE": "baselines", "DATA_DIRECTORY": "/data"}


def job(**args: Value | list[Value]) -> Job:
    """Return a job with `lr=1` as `--lr 1`."""
    pairs = tuple((f"--{k}", tuple(v) if isinstance(v, list) else (v,)) for k, v in args.items())
    return Job("vae", "x", pairs, "student", stem="vae")


def cell(*args: tuple[str, Value]) -> JobCell:
    return JobCell(Job("vae", "x", (), "all", stem="vae"), 1, 1, args)


def test_a_job_without_choices_is_one_cell_named_by_its_stem():
    (only,) = expand(job(lr=0.1, cuda=""))
    assert (only.index, only.of, only.label) == (1, 1, "vae")
    assert only.args == (("--lr", 0.1), ("--cuda", ""))
    assert [c.label for c in expand(job(lr=[0.1]))] == ["vae"]


def test_the_last_list_of_arguments_varies_fastest():
    cells = expand(job(b=[1, 2], cuda="", a=["x", "y", "z"]))
    assert [(dict(c.args)["--b"], dict(c.args)["--a"]) for c in cells] == [
        (1, "x"), (1, "y"), (1, "z"), (2, "x"), (2, "y"), (2, "z"),
    ]  # fmt: skip
    assert [c.label for c in cells] == [f"vae.c{k}" for k in range(1, 7)]
    assert {c.of for c in cells} == {6}
    second = Job("vae", "x", (("--a", (1, 2)),), "all", stem="vae-2")
    assert [c.label for c in expand(second)] == ["vae-2.c1", "vae-2.c2"]


def of_devices(*devices: Value, group: Literal["student", "all"] = "all") -> Job:
    return Job("s", "x", (("--devices", devices), ("--lr", (1, 2))), group, stem="s")


def test_dropping_cells_of_too_many_devices_keeps_other_labels():
    for devices, cells in [(1, 2), (3, 4), (8, 8)]:
        labels = [c.label for c in fitting(of_devices(1, 2, "4", 8), devices)]
        assert labels == [f"s.c{k}" for k in range(1, cells + 1)]


def test_zero_devices_means_all_without_passing_the_flag():
    """`convnets` and `dcgan` know no `--devices 0`, and that of `scaling` would be a launch for each number."""
    for whole in (Job("s", f"{SWEEPING}run.sh", (("--lr", (1,)),), "all", stem="s"), of_devices(1, 2, 4)):
        (all_of_them,) = over_devices([whole], [whole], 0)
        assert dict(all_of_them.args).keys() == {"--lr"}
        assert swept(all_of_them, 8) == all_of_them
        (two,) = over_devices([whole], [whole], 2)
        assert dict(two.args)["--devices"] == (2,)


def test_a_job_keeps_its_cells_where_none_of_them_fits():
    jobs = [of_devices(*devices) for devices in [(4,), (4, 8), (0, "$DEVICE_TOTAL"), (0, 2)]]
    for whole in [*jobs, of_devices(1, 8, group="student")]:
        assert fitting(whole, 2) == expand(whole)


@given(st.lists(st.lists(st.integers(), min_size=1, max_size=4), max_size=5))
def test_there_are_as_many_cells_as_combinations(lists):
    cells = expand(job(**{f"a{k}": list(values) for k, values in enumerate(lists)}))
    assert len(cells) == math.prod(map(len, lists))
    assert [c.index for c in cells] == list(range(1, len(cells) + 1))
    for c in cells:
        assert all(value in values for (_, value), values in zip(c.args, lists, strict=True))


def test_words_of_one_argument():
    for pair, words in [
        (("--cuda", ""), ["--cuda"]),
        (("--size", "64 128"), ["--size", "64", "128"]),
        (("--title", "'a b' c\\ d \"e 'f'\""), ["--title", "a b", "c d", "e 'f'"]),
        (("--empty", "''"), ["--empty", ""]),
        (("--report", "$OUTPUT_DIRECTORY/$JOB_FILE"), ["--report", "/out put/baselines"]),
        (("--quoted", "'$OUTPUT_DIRECTORY x'"), ["--quoted", "/out put x"]),
        (("$DATA_DIRECTORY/ImageNet/train", ""), ["/data/ImageNet/train"]),
        (("--data=$DATA_DIRECTORY", ""), ["--data=/data"]),
        (("--n", 3), ["--n", "3"]),
        (("--lr", 1e-5), ["--lr", "1e-05"]),
        (("--no-shell", "$$(id) ; `id` | * > ~"), ["--no-shell", "$(id)", ";", "`id`", "|", "*", ">", "~"]),
    ]:
        assert arguments(cell(pair), VALUES) == words


def test_extra_overrides_or_extends():
    own = cell(("data", ""), ("--lr", 0.1), ("--cuda", ""), ("--size", "64 128"))
    for extra, line in [
        ([], ["data", "--lr", "0.1", "--cuda", "--size", "64", "128"]),
        (["--lr", "5"], ["data", "--cuda", "--size", "64", "128", "--lr", "5"]),
        (["--lr=5"], ["data", "--cuda", "--size", "64", "128", "--lr=5"]),
        (["--size", "1", "2", "3"], ["data", "--lr", "0.1", "--cuda", "--size", "1", "2", "3"]),
        (["--lr", "5", "--cuda", "--lr=6"], ["data", "--size", "64", "128", "--lr", "5", "--cuda", "--lr=6"]),
        (["--new", "1"], ["data", "--lr", "0.1", "--cuda", "--size", "64", "128", "--new", "1"]),
        (["--lr", "$JOB_FILE"], ["data", "--cuda", "--size", "64", "128", "--lr", "baselines"]),
        (["a b", "$$"], ["data", "--lr", "0.1", "--cuda", "--size", "64", "128", "a b", "$"]),
    ]:
        assert arguments(own, VALUES, extra) == line
    assert arguments(cell(("--lr=0.1", "")), {}, ["--lr", "5"]) == ["--lr", "5"]


def test_the_seed_of_the_run_overrides_that_of_a_cell():
    line = arguments(cell(("--seed", 1), ("--a", 2)), {}, ["--b", "3"], seed=100)
    assert line == ["--seed", "1", "--a", "2", "--b", "3", "--seed", "100"]
    for extra in (["--seed", "5"], ["--seed=5"]):
        assert arguments(cell(("--seed", 1)), {}, extra, seed=100) == extra
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", "-s", type=int)
    for extra in (["-s", "5"], ["-s5"], ["-s=5"]):
        line = arguments(cell(("--seed", 1)), {}, extra, seed=100)
        assert line == ["--seed", "1", "--seed", "100", *extra]
        assert parser.parse_args(line).seed == 5
    assert arguments(cell(), {}, [], seed=None) == []
    assert arguments(cell(), {}, [], seed=0) == ["--seed", "0"]


def test_behind_a_second_separator_there_are_no_flags():
    own = cell(("--lr", 1))
    assert arguments(own, {}, ["--a", "--", "--lr", "--seed"], 7) == [
        "--lr", "1", "--a", "--seed", "7", "--", "--lr", "--seed",
    ]  # fmt: skip


def test_flags_and_values():
    assert all(map(is_flag, ["-x", "--xyz", "--lr=0.1", "-x3", "--", "-.", "--5", "-a b"]))
    assert not any(map(is_flag, ["", "-", "x", "5", "-5", "-.5", "-1e-05", "-0.0005", "a-b"]))


@given(st.sampled_from([*VALUES]), st.text(), st.booleans())
def test_a_value_stays_one_argument(name, value, braces):
    text = f"${{{name}}}/x" if braces else f"${name}/x"
    line = arguments(cell(("--a", text), (text, "")), {name: value}, [text])
    assert line == ["--a", f"{value}/x", f"{value}/x", f"{value}/x"]


FLAGS = st.sampled_from(["--lr", "--size", "--cuda", "-b", "--new"])
PLAIN = st.one_of(st.integers().map(str), st.floats(allow_nan=False).map(str), st.sampled_from(["x", "a b", ""]))
GROUPS = st.lists(st.tuples(FLAGS, st.lists(PLAIN, max_size=3), st.booleans()), max_size=5)


@given(GROUPS)
def test_extra_arguments_replace_only_the_flags_they_name(groups):
    extra: list[str] = []
    for flag, values, attached in groups:
        extra += [f"{flag}={values[0]}", *values[1:]] if attached and values else [flag, *values]
    own = (("--lr", 0.1), ("--size", "64 128"), ("--cuda", ""), ("-b", -5))
    line = arguments(cell(*own), {}, extra)
    assert line[len(line) - len(extra) :] == extra
    before = line[: len(line) - len(extra)]
    replaced = {flag for flag, _, _ in groups}
    assert {flag_name(word) for word in before if is_flag(word)} == {key for key, _ in own} - replaced


@given(st.dictionaries(st.sampled_from(["--a", "--b", "--c"]), st.integers()), st.integers(0, 2**32))
def test_argparse_reads_what_was_asked(extra, seed):
    parser = argparse.ArgumentParser()
    for flag in ("--a", "--b", "--c", "--seed"):
        parser.add_argument(flag, type=int)
    words = [word for flag, value in extra.items() for word in (flag, str(value))]
    own = {"--a": 1, "--b": -2}
    read = parser.parse_args(arguments(cell(*own.items()), {}, words, seed))
    expected = {"--c": None, **own, **extra, "--seed": seed}
    assert {f"--{name}": value for name, value in vars(read).items()} == expected
