"""Turns the flags of a suite into its options: the jobs and mixes to run, their users, and the way to measure them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from cotenant.checkout import CHECKOUT, INSTALLED, base_directory, output_directory
from cotenant.choices import BaselineKind
from cotenant.commands.given import LaunchFlags, SuiteFlags
from cotenant.commands.output import warn
from cotenant.commands.suite_flags import jobs_path
from cotenant.errors import CotenantError
from cotenant.isolation.plan import tenants_by_default
from cotenant.isolation.runs import RunName
from cotenant.launch.containers import image_of
from cotenant.launch.duration import MOST_S
from cotenant.launch.limits import Limits
from cotenant.launch.paths import RunPaths
from cotenant.launch.start import Options
from cotenant.machine.topology import Machine
from cotenant.nodes.cluster import ClusterFlags, cluster_of
from cotenant.suite.cells import Job, labels_of, over_devices
from cotenant.suite.decode import at
from cotenant.suite.duets import BETWEEN, REPETITIONS, USAGE, Duet, duet_of
from cotenant.suite.jobfile import Suite, load, select
from cotenant.suite.mixes import Mix, check_mixes, mix_named, pairs_named
from cotenant.suite.pressure import FLAG, level_of, pressed
from cotenant.suite.variables import flag_name
from cotenant.text import listed

SETTLE_S, AT_LEAST_S = 3.0, 10.0
"""Seconds on devices: most reference benchmarks take less than two there, too short for heat, power and energy."""
UID_DIGITS = 18
"""A number with more digits may not fit into a column of 64 bits, nor may the seeds that follow from it."""
REPEATS = ("--repeat", "--num-iters")
"""Flags of benchmarks for the number of observations."""
NOT_OF_DUETS = (
    *("name", "exclude", "mix", "pairs", "pressure", "free_for_all", "devices", "nnodes"),
    *("baseline", "slices", "share", "at_least"),
)
"""Flags that choose which jobs run, or how often; a duet already does."""


def options_of(given: SuiteFlags, extra: tuple[str, ...], machine: Machine, jobs_alone: bool = False) -> Options:
    """Return the options of the command line; the suite without `--jobs` depends on the machine.

    With `jobs_alone` the mixes are left out, but there are as many users as with them. Raises CotenantError for flags
    that make no sense, and for a wrong job file.
    """
    if (given.singularity or given.docker) and INSTALLED:
        raise CotenantError(
            "An image needs a checkout to bind into it, and this is an installed package.",
            "Use ./run.sh of a checkout.",
        )
    suite = load(jobs_path(given.jobs, machine))
    if given.free_for_all:
        if given.isolation not in ("auto", "none"):
            sentence = f"--free-for-all makes no slices, and --isolation is {given.isolation}."
            raise CotenantError(sentence, "Use --mix a,b,c.")
        given = replace(given, isolation="none")
    duet = _duet(given, extra, suite)
    chosen = Selected() if duet else _selected(given, suite)
    jobs, mixes, neighbours = Selected(chosen.jobs) if jobs_alone else chosen
    baseline = "none" if duet else _baseline(given, mixes)
    by_words = _first_of((*REPEATS, "--skip"), extra) or ("--at-least" if given.at_least else "")
    counted_by = by_words if baseline == "blocks" else ""  # blocks have a number of observations of their own
    usual, cluster = usual_options(given, machine, suite, jobs, duet), cluster_of(cluster_flags(given))
    if cluster is not None and duet:
        raise CotenantError("A duet runs on one host.", "Start it outside of srun and torchrun, or on one node.")
    if cluster is not None and usual.repetitions > 1:
        raise CotenantError("--repetitions runs on one host.", "Give each repetition its --uid, on every host.")
    settle_s = usual.limits.settle_s if given.settle is None else given.settle
    at_least_s = _at_least_s(given, extra, usual.limits.at_least_s)
    return replace(
        usual,
        mixes=mixes,
        neighbours=neighbours,
        users=_users(given, chosen.mixes, machine) if duet is None else usual.users,
        limits=replace(usual.limits, settle_s=settle_s, at_least_s=at_least_s, on_oom=given.on_oom),
        memory_class=given.memory_class,
        image=image_of(given.singularity, given.docker),
        baseline=baseline,
        counted_by=counted_by,
        within_s=MOST_S if baseline == "blocks" and not counted_by and _is_bare(given, machine) else None,
        raise_error=given.raise_error,
        cluster=cluster,
        extra=() if duet else extra,
    )


def usual_options(
    given: LaunchFlags, machine: Machine, suite: Suite, jobs: tuple[Job, ...], duet: Duet | None = None
) -> Options:
    """Return the options of the flags that a suite and `exec` have in common. Raises CotenantError."""
    if given.uid < 0:
        raise CotenantError(f"--uid {given.uid} is negative.", "Use --uid 0 or more.")
    if given.uid >= 10**UID_DIGITS:
        raise CotenantError(f"--uid {given.uid} has more than {UID_DIGITS} digits.", "Use a smaller number.")
    repetitions = given.repetitions if given.repetitions is not None else REPETITIONS if duet else 1
    if repetitions < 1:
        raise CotenantError(f"--repetitions {repetitions} is no number of repetitions.", "Count from 1.")
    base, run = base_directory(), RunName()
    data = Path(os.environ.get("DATA_DIRECTORY") or base / "data").absolute()
    users, slices = given.users, given.slices
    if duet is not None:
        # Two tenants share each slice.
        slices = tenants_by_default(machine, users)
        users = 2 * slices
    return Options(
        suite=suite,
        jobs=jobs,
        duet=duet,
        checkout=CHECKOUT,
        run=run,
        paths=RunPaths.of_run(base, data, (given.outdir or output_directory()).absolute(), run),
        uid=given.uid,
        repetitions=repetitions,
        users=users,
        slices=slices,
        share=given.share,
        isolation=given.isolation,
        cgroup_base=given.cgroup_base,
        policy=given.plan,
        mems=given.mems,
        reserve_bytes=given.reserve,
        limits=Limits(
            timeout_s=given.timeout,
            ready_limit_s=given.ready_timeout,
            budget_s=given.budget,
            until_interval=given.until_interval,
            settle_s=SETTLE_S if machine.accelerators else 0.0,
            at_least_s=AT_LEAST_S if machine.accelerators and given.budget is None else 0.0,
        ),
        resume=given.resume,
    )


def cluster_flags(given: SuiteFlags) -> ClusterFlags:
    """Return the flags on several hosts. Raises CotenantError."""
    if given.nnodes is not None and given.nnodes < 1:
        raise CotenantError(f"--nnodes {given.nnodes} is no number of hosts.", "Count from 1.")
    return ClusterFlags(given.launcher, given.nnodes, given.node_rank, given.rdzv_endpoint)


class Selected(NamedTuple):
    """All launches of a suite; `neighbours` are the mixes' neighbours of known pressure."""

    jobs: tuple[Job, ...] = ()
    mixes: tuple[Mix, ...] = ()
    neighbours: tuple[Job, ...] = ()


def _selected(given: SuiteFlags, suite: Suite) -> Selected:
    """Return the jobs and mixes to run: the whole file, or the choice of `--mix`, `--pairs` or `--pressure`."""
    flags = [name for name in ("mix", "pairs") if getattr(given, name) is not None]
    if not flags:
        entries = select(suite.entries, given.name, given.exclude, warn)
        jobs = tuple(entry for entry in entries if isinstance(entry, Job))
        if given.devices is not None:
            jobs = _over_devices(given.devices, suite, jobs)
        if given.free_for_all:
            return Selected(mixes=(_all_at_once(given, jobs),))
        if not given.pressure:
            return Selected(jobs, tuple(entry for entry in entries if isinstance(entry, Mix)))
        # No job runs by itself: each chosen job is beside each neighbour.
        return _checked(FLAG, suite, *pressed([label for job in jobs for label in labels_of(job)], given.pressure))
    if given.free_for_all:
        raise CotenantError(f"--free-for-all and --{flags[0]} both say what is launched.", "Leave one of them out.")
    if len(flags) > 1:
        raise CotenantError("--mix is one launch and --pairs are several.", "Leave one of them out.")
    if given.pressure:
        raise CotenantError(f"--{flags[0]} and --pressure both choose a job's neighbours.", "Leave one of them out.")
    if given.name or given.exclude:
        raise CotenantError(f"--{flags[0]} names all that runs.", "Leave out --name and --exclude.")
    mix = pairs_named(given.pairs or "") if given.mix is None else mix_named(given.mix)
    return _checked(f"--{flags[0]}", suite, (mix,))


def _checked(flag: str, suite: Suite, mixes: tuple[Mix, ...], neighbours: tuple[Job, ...] = ()) -> Selected:
    """Return these mixes and no jobs alone. Raises CotenantError, which names the flag, for an impossible mix."""
    with at(flag):
        check_mixes((*suite.jobs, *neighbours), mixes)
    return Selected((), mixes, neighbours)


def _duet(given: SuiteFlags, extra: Sequence[str], suite: Suite) -> Duet | None:
    """Return the duet of `--duet`, None without one. Raises CotenantError, also for flags that choose launches."""
    if given.duet is None:
        if BETWEEN in extra:
            raise CotenantError(f"{BETWEEN} stands between the arguments of two, and there is no --duet.", USAGE)
        return None
    check_alone(given, NOT_OF_DUETS, USAGE)
    duet = duet_of(given.duet, extra)
    with at("--duet"):
        check_mixes(suite.jobs, [Mix(duet.name, (duet.label,), family="--duet")])
    return duet


def check_alone(given: LaunchFlags, others: Sequence[str], usage: str) -> None:
    """Raise CotenantError if one of these other flags is given beside `--duet`."""
    asked = (name for name in others if getattr(given, name) not in (None, False, (), [], "none"))
    if flag := next(asked, None):
        sentence = f"--duet runs two users by turns, and --{flag.replace('_', '-')} asks for something else."
        raise CotenantError(sentence, f"Leave it out. {usage}")


def _over_devices(devices: int, suite: Suite, jobs: Sequence[Job]) -> tuple[Job, ...]:
    """Return the chosen jobs as one model over `devices` devices each. Raises CotenantError if no job can run so."""
    if devices < 0:
        raise CotenantError(f"--devices {devices} is no number of devices.", "Count from 1; 0 is all of them.")
    whole = over_devices(jobs, suite.jobs, devices)
    if not whole:
        names = listed(job.stem for job in jobs)
        raise CotenantError(
            f"--devices: {names} cannot train one model over several devices.",
            'Jobs with "cgroup": "all" can, such as the jobs of --jobs lambda with names in _all.',
        )
    return whole


def _all_at_once(given: SuiteFlags, jobs: Sequence[Job]) -> Mix:
    """Return a launch of all these jobs' cells at once, without jobs that own the machine."""
    if whole := [job.stem for job in jobs if job.group == "all"]:
        warn(f"{listed(whole)}: left out of --free-for-all, as each owns the machine.")
    labels = [label for job in jobs if job.group != "all" for label in labels_of(job)]
    if len(labels) < 2:
        raise CotenantError(
            "--free-for-all launches jobs beside each other, and here are fewer than two.", "Name more."
        )
    if given.pressure:
        raise CotenantError("--free-for-all and --pressure both choose a job's neighbours.", "Leave one of them out.")
    return Mix("free-for-all", tuple(labels))


def _users(given: SuiteFlags, mixes: Sequence[Mix], machine: Machine) -> int | None:
    """Return the number of tenants; for a single mix by default as many as it names, at least the usual number.

    Raises CotenantError for a number other than two with pairs or curves.
    """
    users = given.users
    if family := next((mix.family for mix in mixes if mix.family), ""):
        if users not in (None, 2):
            raise CotenantError(
                f"{family}: these launches have two users.", "Leave out --users, or the flag for two users."
            )
        return 2
    if users is not None or not (given.free_for_all or given.mix is not None):
        return users
    return max(len(mixes[0].labels), tenants_by_default(machine, None))


def _baseline(given: SuiteFlags, mixes: Sequence[Mix]) -> BaselineKind:
    """Return the baseline: the flag's, else `blocks` without `--jobs`, with `--users` or with mixes, since only a
    baseline makes the rates of their jobs comparable; else none, since a job file names everything that is to run.

    Without slices the default is none, since no tenant is alone in a slice, except beside a neighbour of known
    pressure: its curve needs a baseline. Raises CotenantError for a curve without one.
    """
    curves = any(level_of(label) is not None for mix in mixes for label in mix.labels)
    if given.baseline == "none" and curves:
        raise CotenantError(
            "--baseline none measures no job alone, and a curve is relative to that rate.", "Leave it out."
        )
    if given.baseline is not None:
        return given.baseline
    asked = given.jobs is None or given.users is not None or mixes
    return "blocks" if curves or (asked and given.isolation != "none") else "none"


def _is_bare(given: SuiteFlags, machine: Machine) -> bool:
    """Return whether flags choose no job file, mix, users, nodes or budget, and there is no device.

    Such a run gets a time limit.
    """
    said = (given.jobs, given.users, given.budget, given.nnodes, given.mix, given.pairs, given.pressure)
    return not machine.accelerators and not any(said) and not given.free_for_all


def _first_of(flags: Sequence[str], words: Sequence[str]) -> str:
    """Return the first word that is one of these flags, "" without any."""
    return next((flag for flag in map(flag_name, words) if flag in flags), "")


def _at_least_s(given: SuiteFlags, extra: Sequence[str], usual_s: float) -> float:
    """Return the least time that kept observations last; the default does not hold beside a flag for their number.

    A job file's `--repeat` is the reference's, made for slower devices, and does not count. Raises CotenantError for
    both kinds of flag.
    """
    repeat = _first_of(REPEATS, extra)
    if given.at_least is None:
        return 0.0 if repeat else usual_s
    least = given.at_least
    if least and (given.budget is not None or repeat):
        other = "--repeat" if repeat else "--budget"
        raise CotenantError(
            f"--at-least and {other} both say how much is observed.", f"Leave out --at-least, or {other}."
        )
    return least
