"""A suite on every node of a cluster at once; their records come to one directory as they are written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from cotenant.fleet.cluster import RayCluster, keep_files
from cotenant.fleet.node import ERR
from cotenant.text import many

Tell = Callable[[str], None]


def run_everywhere(
    cluster: RayCluster, base: Path, words: Sequence[str], files: Mapping[str, bytes], output: Path, tell: Tell
) -> bool:
    """Start a run on each node, in a folder of its name below `base`; its files come to a folder below `output`.

    Returns whether all jobs passed on all nodes; `tell` gets a sentence about each node that ends or is lost.
    Raises CotenantError.
    """
    ends = dict.fromkeys(cluster.silent, "does not answer, or has no free CPU.")
    for name in cluster.nodes:
        if reason := cluster.start(name, base / name, words, base / name, files):
            ends[name] = f"cannot start a run: {reason}"
    for name, end in ends.items():
        tell(f"{name} {end}")
    running, passed = cluster.nodes.keys() - ends, not ends
    while running:
        for name, news in cluster.news(frozenset(running)):
            folder = output / name
            if isinstance(news, str):
                end = f"is lost ({news.rstrip('.')})"
            else:
                files, status = news
                keep_files(folder, files)
                if status is None:
                    continue
                said = (folder / ERR).read_text(errors="replace").strip().splitlines()
                end = f"ended with status {status} ({''.join(said[-1:])})" if status else "is done"
            running.discard(name)
            passed &= end == "is done"
            tell(f"{name} {end}: its logs and {many(len([*folder.glob('*.D*.json')]), 'record')} are in {folder}")
    return passed
