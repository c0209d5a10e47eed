"""`cotenant run --launcher ray`: from a host of a Ray cluster, one run over several of its nodes."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TextIO

from cotenant.checkout import base_directory
from cotenant.commands.given import SuiteFlags
from cotenant.commands.output import mute, note
from cotenant.commands.suite_options import options_of
from cotenant.machine.topology import discover
from cotenant.nodes import slurm
from cotenant.results.store import prepare_directory

OUTDIR = "--outdir names another directory."


def as_node_0(given: SuiteFlags) -> SuiteFlags:
    """Return the flags as node 0 gets them, to check them before there is a node."""
    nodes = given.nnodes or slurm.nodes_of(os.environ)
    return replace(given, launcher="torchrun", nnodes=nodes, node_rank=0, rdzv_endpoint="127.0.0.1")


def run_on_ray(given: SuiteFlags, words: Sequence[str], extra: tuple[str, ...]) -> int:
    """Run on `--nnodes` nodes of the cluster; `given` was parsed from `words`.

    Returns the exit status of node 0, or of the node that ended it. Raises CotenantError.
    """
    from cotenant.fleet.cluster import RayCluster, job_file
    from cotenant.fleet.distributed import DistributedJob, DistributedPlan

    options = options_of(as_node_0(given), extra, discover())
    output = options.paths.output
    prepare_directory(output, OUTDIR)
    # Without --jobs each node chooses its suite by its devices.
    jobs, files = job_file(options.suite.path) if given.jobs is not None else ("", {})
    plan = DistributedPlan(
        words=[*words, *(["--jobs", jobs] if jobs else [])],
        extra=extra,
        base=base_directory().absolute(),
        output=output,
        files=files,
        nodes=given.nnodes or slurm.nodes_of(os.environ),
        resume=given.resume,
    )
    out = sys.stdout
    # Ray prints lines about nodes that die, and standard output may be a document.
    with contextlib.redirect_stdout(sys.stderr), contextlib.closing(RayCluster("auto")) as cluster:
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # Ray has set a handler of its own.
        return DistributedJob(plan, cluster, partial(_show, out), note).run()


def _show(stdout: TextIO, out: bytes, err: bytes) -> None:
    """Print the output of node 0 on the same streams here, even if a reader has left."""
    print(err.decode(errors="replace"), end="", file=sys.stderr, flush=True)
    with contextlib.redirect_stdout(stdout):
        try:
            print(out.decode(errors="replace"), end="", flush=True)
        except BrokenPipeError:
            mute()
