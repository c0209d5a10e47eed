"""The flags that choose the jobs to run, and how: of a suite and of `doctor`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from cotenant.checkout import CHECKOUT, PROGRAM
from cotenant.choices import CLASSES, LAUNCHERS, OF_DEVICES, OF_HOSTS
from cotenant.commands.flags import Parser, add_slice_flags, duration_or_none
from cotenant.commands.given import add_flags
from cotenant.suite.duets import BETWEEN, USAGE

if TYPE_CHECKING:
    from cotenant.machine.topology import Machine

HINT = "--name chooses jobs; a benchmark's own flags stand after --; --help lists all others."
SCALING = f"{PROGRAM} --jobs scaling -- "
OVER_DEVICES = "--devices N trains one model over N devices; CUDA_VISIBLE_DEVICES leaves devices out."
MEANT = {
    "--model": f"--name chooses a job; {SCALING}--model resnet50 trains one of torchvision's models.",
    "--arch": "It is a flag of the benchmark, after --: --name convnet -- --arch resnet50.",
    "--network": f"It is a flag of the benchmark: {SCALING}--network resnet50.",
    "--gpus": OVER_DEVICES,
    "--num-gpus": OVER_DEVICES,
    "--batch-size": "It is a flag of the benchmarks, after --: -- --batch-size 64.",
    BETWEEN: f"It comes after --, between two sets of arguments. {USAGE}",
    "--gpu-model": f"It is a flag of {PROGRAM} mlbench-report.",
    "--reports": f"It is a flag of {PROGRAM} mlbench-report.",
} | {
    flag: f"It is a flag of one benchmark: {SCALING}{flag}."
    for flag in ("--num-iters", "--num-batches-per-iter", "--num-warmup-batches", "--use-fp16", "--fp16-allreduce")
}
"""Flags of other suites, with the advice on each."""


def suite_parser(
    command: str, description: str, epilog: str = "", meant: Mapping[str, str] = MappingProxyType({})
) -> Parser:
    """Return a parser with the flags that choose the jobs to run, and how: `SuiteFlags` are its result.

    `meant` has the advice on further flags that the parser lacks.
    """
    parser = Parser(command, description, epilog, HINT, {**MEANT, **meant})
    runs = parser.add_argument_group("what runs")
    add = runs.add_argument
    add_jobs(add)
    add("--mix", metavar="NAMES", help="one launch of these different jobs beside each other")
    pairs = "each pair of these jobs beside each other, and alone"
    add("--pairs", metavar="NAMES", help=pairs)
    add("--duet", metavar="NAME", help="is B slower? both take turns: -- A... --- B...")
    add_flags(add, "--baseline", "--budget", "--resume", "--outdir")
    add_slice_flags(parser)
    _add_timing(parser)
    _add_jobs_further(parser)
    _add_beside(parser)
    _add_images(parser)
    _add_nodes(parser)
    return parser


def _add_jobs_further(parser: Parser) -> None:
    add = parser.add_rare_group("what runs, further").add_argument
    over = "each chosen job as one model over N devices (without accelerators: ranks), 0 for all; not a copy on each"
    add("--devices", type=int, metavar="N", help=over)
    small = "batch sizes of this class for jobs that name $BATCH_SIZE (default: the class of a user's device memory)"
    add("--memory-class", choices=CLASSES, help=small)
    add_flags(add, "--uid", "--repetitions")
    add("--raise-error", action="store_true", help="stop after the first launch that fails")


def _add_images(parser: Parser) -> None:
    images = parser.add_rare_group("images").add_mutually_exclusive_group()
    inside = "run every command inside this image, by apptainer or singularity; slices are made outside it"
    images.add_argument("--singularity", metavar="IMG", help=inside)
    by_podman = "run every command inside this image of Docker's kind, by podman; slices are made outside it"
    images.add_argument("--docker", metavar="IMG", help=by_podman)


def _add_timing(parser: Parser) -> None:
    add = parser.add_rare_group("how it is measured").add_argument
    add("--no-nocache", action="store_true", help="accepted: the page cache is left alone")
    victim = "when the kernel kills a process for memory: end its user, or that process alone (default group)"
    add("--on-oom", choices=("group", "process"), help=victim)
    add_flags(add, "--timeout", "--ready-timeout", "--until-interval")
    settling = "seconds of unmeasured load before the first observation (default 3s on devices, else 0)"
    add("--settle", type=duration_or_none, metavar="S", help=settling)
    lasting = "observe until the kept observations last this long (default 10s on devices, else 0; not with --budget)"
    add("--at-least", type=duration_or_none, metavar="S", help=lasting)


def _add_nodes(parser: Parser) -> None:
    add = parser.add_rare_group("several hosts").add_argument
    by = "launcher of the runners on several hosts (default auto: from the environment)"
    add("--launcher", choices=LAUNCHERS, help=by)
    add(
        "--nnodes",
        type=int,
        metavar="N",
        help="number of hosts, each running this command; only jobs of the group all run",
    )
    add("--node-rank", type=int, metavar="K", help="number of this host (default: 0 on the endpoint's host)")
    where = "address and port of node 0, where the ranks meet and the records are kept"
    add("--rdzv-endpoint", metavar="HOST:PORT", help=where)


def add_jobs(add: Callable[..., object]) -> None:
    """Add the flags that choose jobs."""
    add("--jobs", metavar="FILE", help="a job file, or the name of one in profiles/")
    add("--name", action="append", default=[], metavar="NAMES", help="only these jobs: names, globs, comma lists")
    add("--exclude", action="append", default=[], metavar="NAMES", help="not these jobs")


def _add_beside(parser: Parser) -> None:
    add = parser.add_rare_group("beside each other, further").add_argument
    free = "all chosen jobs at once, a user for each and no slices: as --isolation none --mix with all of them"
    add("--free-for-all", action="store_true", help=free)
    pressing = (
        f"each chosen job beside a neighbour of known pressure on {', '.join(OF_HOSTS)}, and on a device that both "
        f"have on {', '.join(OF_DEVICES)}: levels in percent, as dram:25,50,75,100 (these by default); may be repeated"
    )
    add("--pressure", metavar="RESOURCE[:LEVELS]", action="append", help=pressing)


def jobs_path(jobs: str | None, machine: Machine) -> Path:
    """Return the job file: by default the reference suite on a host with accelerators, else its CPU sizes.

    Raises CotenantError if no job file has the name.
    """
    from cotenant.suite.jobfile import resolve_path

    if jobs is not None:
        return resolve_path(jobs, [Path.cwd(), CHECKOUT])
    return CHECKOUT / ("baselines.json" if machine.accelerators else "profiles/cpu.json")
