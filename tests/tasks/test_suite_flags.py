"""Every job of the shipped job files: its command exists, and its benchmark understands every flag."""

import ast
import functools
import inspect
import itertools
import re
import shlex
from pathlib import Path

import pytest
import torch

from cotenant.bench import Benchmark, Run, UnsupportedError
from cotenant.bench.arguments import declared, parse
from cotenant.bench.device import Device
from cotenant.bench.facts import arguments_of, without_effect
from cotenant.bench.precision import set_precision
from cotenant.report.foreign import THEIRS
from cotenant.suite.cells import Job, JobCell, arguments, asks_for_sizes, expand, precision_of, with_arguments
from cotenant.suite.jobfile import load
from cotenant.suite.sizes import CLASSES, CPU, FILE, WHOLE, load_sizes
from cotenant.suite.task_source import source_of, task_of
from cotenant.suite.variables import VARIABLES
from tasks.loading import ROOT, TASKS, main_of, of
from tenants.suites import Suites

ORDER = shlex.split(
    "toy_reg toy_lstm vae loader reso translator wlm wlmfp16 cart atari ssd fast_style dcgan convnet convnet_fp16 "
    "recom convnet_distributed convnet_distributed_fp16 dcgan_all"
)
VALUES = dict.fromkeys(VARIABLES, "/x") | {"DEVICE_TOTAL": "2"}
PROFILES = ("cpu", "16gb", "scaling", "h100", "cotenancy", "ceilings")
FILES = ("baselines.json", *(f"profiles/{name}.json" for name in PROFILES))
SIZED = [
    job
    for file in ("lambda", "modern", "scaling")
    for job in load(ROOT / f"profiles/{file}.json").jobs
    if asks_for_sizes(expand(job)[0])
]
SIZES = load_sizes(ROOT / "profiles" / FILE)
CELLS = [cell for file in FILES for job in load(ROOT / file).jobs for cell in expand(job) if not asks_for_sizes(cell)]


def test_the_reference_suite_is_complete_and_in_order() -> None:
    assert [job.name for job in load(ROOT / "baselines.json").jobs] == ORDER
    assert [job.name for job in load(ROOT / "profiles/cpu.json").jobs] == [*ORDER, "scaling"]


def test_the_profile_of_different_jobs_has_a_mix_and_every_pair() -> None:
    suite = load(ROOT / "profiles/cotenancy.json")
    (pairs,) = (mix for mix in suite.mixes if mix.family)
    assert (len(suite.jobs), pairs.family, len(pairs.apart)) == (6, "pairs", 15)
    assert [mix.name for mix in suite.mixes if not mix.family] == ["lab"]


def test_the_16_gb_profile_halves_the_reference_batches() -> None:
    for full, half in zip(load(ROOT / "baselines.json").jobs, load(ROOT / "profiles/16gb.json").jobs, strict=True):
        for (flag, (ours,)), (same_flag, (theirs,)) in zip(full.args, half.args, strict=True):
            assert flag == same_flag
            assert theirs == ours or (flag == "--batch-size" and theirs * 2 == ours)


def test_the_h100_profile_twins_every_fp32_device_training_job() -> None:
    trained = [cell.job for job in load(ROOT / "baselines.json").jobs for cell in expand(job)]
    no_twins = {job.name for job in trained if {"--fp16", "--half", "--no-cuda"} & dict(job.args).keys()} | {"loader"}
    twins = [job.name for job in load(ROOT / "profiles/h100.json").jobs if job.family]
    names = [name for name in ORDER if name not in no_twins]
    names.insert(names.index("toy_lstm") + 1, "toy_lstm_layers")
    assert twins == [f"{name}_{precision}" for name in names for precision in ("tf32", "bf16")]


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.label)
def test_a_job_is_understood(cell: JobCell) -> None:
    command = (TASKS / cell.job.cmd).resolve()
    assert command.is_file()
    preset = ["--fp16"] if command.name == "run_fp16.sh" else []
    words = [*preset, *arguments(cell, VALUES, seed=100)]
    parsed = parse(cls := of(str(command.parents[1].relative_to(TASKS))), words)
    given = dict(cell.args)
    assert parsed.values["repeat"] == given["--repeat"]
    batch_size = parse(cls, []).values["batch_size"] if cell.job.cmd.startswith("./ceilings") else None
    assert parsed.values["batch_size"] == given.get("--batch-size", given.get("--num-processes", batch_size))
    distributed = cell.job.group == "all"
    assert ("cotenant.bench.ranks" in command.read_text()) == distributed


@pytest.mark.parametrize("job", SIZED, ids=lambda job: job.name)
def test_a_job_of_a_family_is_understood_in_every_memory_class(job: Job) -> None:
    cell, *_ = expand(job)
    command = (TASKS / job.cmd).resolve()
    assert command.is_file()
    cls = of(str(command.parents[1].relative_to(TASKS)))
    sizes = {one: SIZES.size_of(job.family or job.name, precision_of(cell), one) for one in CLASSES}
    assert sizes[CPU]
    batch_sizes = [size.batch_size for size in sizes.values() if size]
    # Other classes give the same words with other numbers.
    for size in {size.args: size for size in sizes.values() if size}.values():
        words = arguments(with_arguments(cell, size.args), VALUES | {"BATCH_SIZE": str(size.batch_size)})
        cls(**parse(cls, words).values)
    assert batch_sizes[1:] == sorted(batch_sizes[1:])


@pytest.mark.parametrize("job", [job for job in SIZED if job.name.endswith("_fp32") and job.family in THEIRS])
def test_published_columns_match_the_arguments_of_their_family(job: Job) -> None:
    cell, *_ = expand(job)
    cls = of(str((TASKS / job.cmd).resolve().parents[1].relative_to(TASKS)))
    given = arguments_of(cls(**parse(cls, arguments(cell, VALUES | {"BATCH_SIZE": "2"})).values))
    assert given.items() >= THEIRS[job.family].items()


def test_every_table_of_batch_sizes_is_of_a_job() -> None:
    """A job over all devices uses the table of its twin."""
    assert SIZES.families.keys() == {(job.family or job.name).removesuffix(WHOLE) for job in SIZED}


IGNORED = {
    "reso": ["--testBatchSize", "--no-checks"],
    "translator": ["--target-bleu", "--epochs"],
    "wlm": ["--epochs"],
    "wlmfp16": ["--epochs"],
    "cart": ["--log-interval"],
    "ssd": ["--no-save", "--threshold"],
    "recom": ["--threshold", "--processes"],
    "dcgan_all": ["--ngpu"],
}
REFERENCE = {job.name: expand(job)[0] for job in load(ROOT / "baselines.json").jobs}
BENCH = ROOT / "common/cotenant/bench"
READ_ELSEWHERE = {"report"}  # from the arguments that its record will hold


@functools.cache
def read_of_itself(folder: Path) -> set[str]:
    """Return the attributes that the programs in a folder read of `self` or `benchmark`."""
    return {name for path in folder.glob("*.py") for name in read_in(path.read_text())}


@functools.cache
def read_in(source: str) -> set[str]:
    owners = ("self", "benchmark")
    return {
        node.attr
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Load)
        and (getattr(node.value, "id", "") in owners or getattr(node.value, "attr", "") in owners)
    }


def given_to(cell: JobCell) -> tuple[type[Benchmark], list[str], Path]:
    """Return a job's benchmark, the words it is started with, and the folder of its programs."""
    folder = (TASKS / cell.job.cmd).resolve().parent
    return of(str(folder.parent.relative_to(TASKS))), arguments(cell, VALUES, seed=100), folder


OTHER_THAN_DEFAULT = {
    "toy_reg": {"repeat": 20, "number": 100},
    "toy_lstm": {"batch_size": 1, "repeat": 10},
    "vae": {"repeat": 50, "number": 30},
    "wlmfp16": {"batch_size": 128, "fp16": True},
    "cart": {"batch_size": 1},
    "atari": {"num_steps": 128, "use_gae": True},  # PPO's defaults, which its job does not give.
    "convnet_fp16": {"batch_size": 128, "half": True},
    "convnet_distributed_fp16": {"batch_size": 128, "half": True},
}
UNSAID = {
    "reso": {"crop": 256},
    "translator": {"words": 32_320, "hidden": 1024, "dropout": 0.2},
    "wlm": {"words": 33_278, "bptt": 35, "lr": 20.0},
    "recom": {"layers": (256, 256, 128, 64)},
}


@pytest.mark.parametrize("name", ORDER)
def test_the_defaults_of_a_benchmark_match_its_reference_job(name: str) -> None:
    cls, words, _ = given_to(REFERENCE[name])
    parsed, defaults = parse(cls, words), parse(cls, []).values
    assert sorted(parsed.ignored) == sorted(IGNORED.get(name, []))
    values = parsed.values
    # A job also says where its files lie, and how many processes load.
    others = {key: value for key, value in values.items() if value != defaults[key]}
    places = {key: others.pop(key, None) for key in ("report", "seed", "data", "workers")}
    assert others == OTHER_THAN_DEFAULT.get(name, {})
    assert (places["seed"], places["workers"] in (None, 8)) == (100, True)
    assert (values["data"] is not None) == any(word.startswith("/x/") for word in words)
    assert {key: defaults[key] for key in UNSAID.get(name, {})} == UNSAID.get(name, {})


LISTED = [
    # a job, its words, and those of them without effect
    ("toy_reg", "", []),
    ("toy_reg", "--channels-last --no-channels-last", []),
    ("toy_reg", "--channels-last", ["--channels-last"]),
    ("vae", "--channels-last", ["--channels-last"]),
    ("toy_lstm", "--length 20 --channels-last --batch-size 2", ["--channels-last", "--batch-size"]),
    ("cart", "--channels-last --batch-size 2", ["--channels-last", "--batch-size"]),
    ("wlm", "--emsize 8 --nhid 8 --words 100 --channels-last", ["--channels-last"]),
    ("translator", "--hidden 8 --words 100 --channels-last", ["--channels-last"]),
    ("recom", "--channels-last --workers 8 --threshold 1", ["--threshold", "--workers", "--channels-last"]),
    ("fast_style", "--workers 8 --batch-size 2", ["--workers"]),
    ("reso", "--crop 16 --batch-size 2 --channels-last", []),
    ("dcgan", "--dataset fake --batch-size 2 --channels-last", []),
    ("toy_reg", "--data DATA", ["--data"]),
    ("toy_lstm", "--compile --length 20", ["--compile"]),
    ("dcgan", "--dataroot DATA --dataset fake --batch-size 2", ["--data"]),
    ("loader", "--compile", ["--compile"]),
    ("wlm", "--words 100 --model LSTM --nhead 4", ["--nhead"]),
    ("wlm", "--words 100 --nhead 2", []),
    ("wlm", "--words 100 --model Transformer --nhead 4", []),
]


@pytest.mark.usefixtures("small_tables")
@pytest.mark.parametrize(("name", "words", "listed"), LISTED)
def test_what_did_nothing_is_listed_and_nothing_else(name: str, words: str, listed: list[str], tmp_path: Path) -> None:
    cls, _, _ = given_to(REFERENCE[name])
    parsed = parse(cls, [*words.replace("DATA", str(tmp_path)).split(), "--no-cuda"])
    run = Run(benchmark := cls(**parsed.values))
    if name != "loader":
        benchmark.build(run)
        next(iter(benchmark.batches(run)))
    assert without_effect(parsed, run) == listed


@pytest.mark.parametrize("name", ORDER)
def test_another_value_is_another_record(name: str) -> None:
    """Each flag with a number is doubled; switches have no value to change."""
    cls, words, _ = given_to(REFERENCE[name])
    for index, (flag, value) in enumerate(itertools.pairwise(words)):
        if flag.removeprefix("--").replace("-", "_") in cls.fixed:
            continue
        if flag.startswith("-") and value.replace(".", "", 1).isdecimal() and flag not in IGNORED.get(name, []):
            double = str(2 * (int(value) if value.isdecimal() else float(value)))
            changed = [*words[: index + 1], double, *words[index + 2 :]]
            before, after = (arguments_of(cls(**parse(cls, one).values)) for one in (words, changed))
            assert before != after, flag


@pytest.mark.parametrize("path", sorted(TASKS.glob("*/*/pytorch")), ids=lambda path: path.parent.name)
def test_no_flag_of_any_benchmark_is_swallowed(path: Path) -> None:
    """Some program reads every flag, whether a job of the suite gives it or not."""
    cls = of(str(path.parent.relative_to(TASKS)))
    shared = [base for base in cls.__mro__ if base.__module__.startswith("cotenant.layers.")]
    read = set[str]().union(*(read_in(inspect.getsource(base)) for base in shared))
    assert set(declared(cls)) - read - read_of_itself(path) - read_of_itself(BENCH) <= READ_ELSEWHERE


@pytest.mark.parametrize("path", sorted(TASKS.glob("*/*/pytorch/main.py")), ids=lambda path: path.parts[-3])
def test_what_list_reads_in_a_source_is_what_the_class_says(path: Path) -> None:
    place = str(path.parents[1].relative_to(TASKS))
    source = source_of(path)
    assert source.item == of(place).item
    assert " ".join((main_of(place).__doc__ or "").split()).startswith(source.trains)
    assert source.trains.endswith(".")
    assert {task_of(script) for script in path.parent.glob("run*.sh")} == {path}


@pytest.mark.slow
def test_the_advice_for_fp16_on_a_processor_suits_every_job(loose: Suites) -> None:
    """Each benchmark accepts the words that the refusal of fp16 names, given to the runner behind `--`."""
    with pytest.raises(UnsupportedError) as caught:
        set_precision("half", Device(torch.device("cpu")))
    (told,) = re.findall(r"Use (--precision \w+)\.", str(caught.value))
    ended = loose.run(None, "--jobs", ROOT / "baselines.json", "--users", 2, "--dry", "--verbose", "--", *told.split())
    assert ended.returncode == 0, ended.stderr
    lines = [shlex.split(line)[1:] for line in ended.stdout.splitlines() if line.startswith("  command  ")]
    jobs = {(Path(command), tuple(words)) for command, *words in lines}
    assert len(lines) == 2 * 16 + 3
    for command, words in jobs:
        preset = ["--fp16"] if command.name == "run_fp16.sh" else []
        cls = of(str(command.resolve().parents[1].relative_to(TASKS)))
        assert arguments_of(cls(**parse(cls, [*preset, *words]).values))["precision"] == "bf16", command
