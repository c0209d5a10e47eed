"""Records gathered from a fleet by node and job, whoever brought them, each node in a class of equal hardware.

The records of a node lie in a folder of its name; those that lie in no folder, and exported rows, are of their host.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from cotenant.fleet.resources import resource_of
from cotenant.results.columns import OF_EQUALS
from cotenant.results.decoded import skipped_sentences
from cotenant.results.identity import natural
from cotenant.results.launches import LaunchRecords, grouped, launches_in
from cotenant.results.newest import newest_in
from cotenant.results.read import Records
from cotenant.results.table import IN_FILE, Rows
from cotenant.stats.fleet import Logs
from cotenant.text import many

OF_HARDWARE = ("device", "devices", "processors")
"""Words of a launch's work that nodes of a class have in common."""
OF_SOFTWARE = ("software", "kernels")
"""Words that may differ between nodes of a class; the inventory names them."""


@dataclass(frozen=True, slots=True)
class FleetNode:
    """A node by its name, its `host`, its class of equal `hardware`; `shared`: another node is of the same host."""

    name: str
    host: str
    hardware: str
    shared: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class NodeClass:
    """The nodes of equal hardware that ran, and their jobs. `screening` (N, J) are the log rates of the repetition that
    most nodes have, which is `screened`, `rounds` (K, N, J) those of all others; NaN where there is none.

    A rate is that of a launch's slowest tenant: in a sum over eight devices a slow one would hardly be seen. `at`
    (1 + K, N, J) is the row of its record, -1 without one.
    """

    nodes: Sequence[FleetNode]
    jobs: Sequence[str]
    screening: Logs
    rounds: Logs
    at: npt.NDArray[np.int64]
    resources: npt.NDArray[np.intp]
    works: npt.NDArray[np.intp]
    screened: int


@dataclass(frozen=True, slots=True, eq=False)
class Gathered:
    """All of it. `frame` has a row a record, with the node's name in the place of the host's, which is in `host`.

    `notes` are sentences on records that are left out.
    """

    frame: pl.DataFrame
    nodes: Mapping[str, FleetNode]
    launches: Sequence[LaunchRecords]
    classes: Sequence[NodeClass]
    resources: Sequence[str]
    notes: Sequence[str]
    roots: Sequence[str]
    records: Rows

    def path_of(self, row: int) -> str:
        """Return the path of a row's record, as it lies below the place that was named."""
        path: str = self.frame["path"][row]
        return _below(path, self.roots) or path


def gather(places: Sequence[Path], records: Records, resources: Mapping[str, str]) -> Gathered:
    """Return the rates of these records of `places`, with each job's resource by the patterns of their names."""
    frame = records.frame.with_columns(host=pl.col("hostname"))
    names = _node_names(frame, places)
    frame = frame.with_columns(hostname=pl.Series(names, dtype=pl.String))
    frame = frame.filter(OF_EQUALS)
    newest, notes = newest_in(frame)
    launches = launches_in(newest)
    hosts = dict(frame.select("hostname", "host").unique("hostname", keep="first").iter_rows())
    nodes = _nodes(launches, hosts)
    rated = [launch for launch in launches if launch.rate is not None]
    order = tuple(dict.fromkeys(resources.values()))
    by_class = grouped(rated, lambda launch: nodes[launch.host].hardware)
    classes, other = [], list[str]()
    for of_class in by_class.values():
        same, sentences = _same_work(of_class)
        other += sentences
        classes.append(_node_class(same, nodes, newest, resources, order))
    left_out = [*skipped_sentences(records.skipped), *notes, *other]
    return Gathered(
        frame, nodes, launches, classes, order, list(dict.fromkeys(left_out)), _roots(places), Rows.all(records.table)
    )


def _node_names(frame: pl.DataFrame, places: Sequence[Path]) -> list[str]:
    """Return the node of each row."""
    roots = _roots(places)
    node_of_path: dict[str, str] = {}
    for path in frame["path"].unique():
        below = _below(path, roots)
        node_of_path[path] = below.partition("/")[0] if "/" in below else ""
    rows = frame.select("path", "hostname", pl.col(IN_FILE).is_null()).iter_rows()
    return [(host if exported else node_of_path[path] or host) or "unnamed" for path, host, exported in rows]


def _roots(places: Sequence[Path]) -> list[str]:
    return [f"{place.absolute()}/" for place in places]


def _below(path: str, roots: Sequence[str]) -> str:
    """Return a path from one of the roots on; "" of one that lies elsewhere."""
    absolute = str(Path(path).absolute())
    return next((absolute.removeprefix(root) for root in roots if absolute.startswith(root)), "")


def _nodes(launches: Sequence[LaunchRecords], hosts: Mapping[str, str]) -> dict[str, FleetNode]:
    shared, of_nodes = Counter(hosts.values()), grouped(launches, lambda launch: launch.host)
    nodes = {}
    for name in sorted(of_nodes, key=natural):
        host, rated = hosts[name], [launch for launch in of_nodes[name] if launch.rate]
        nodes[name] = FleetNode(name, host, _hardware(rated), shared[host] > 1)
    return nodes


def _hardware(launches: Sequence[LaunchRecords]) -> str:
    """Name a node's class: `8 x Some Device, 64 processors`. A node without a rate is of none."""
    if not launches:
        return ""
    works = [dict(launch.work) for launch in launches]
    device = Counter(str(work["device"]) for work in works).most_common(1)[0][0]
    devices, processors = (
        max((work[word] for work in works if isinstance(work[word], int)), default=0) for word in OF_HARDWARE[1:]
    )
    tenants = max((work["tenants"] for work in works if isinstance(work["tenants"], int)), default=1)
    each = f"{tenants} users of " if tenants > 1 else ""
    own = f"{devices} x " if devices else ""
    return f"{each}{own}{device or 'an unknown device'}, {many(processors, 'processor')}"


def _same_work(launches: Sequence[LaunchRecords]) -> tuple[list[LaunchRecords], list[str]]:
    """Return the launches that did the work that most of their job did; and a sentence on each job with others."""
    beside = {*OF_HARDWARE, *OF_SOFTWARE}
    same, sentences = [], []
    for job, of_job in grouped(launches, lambda launch: launch.job).items():
        works = [tuple(pair for pair in launch.work if pair[0] not in beside) for launch in of_job]
        (usual, count), *others = Counter(works).most_common()
        same += [launch for launch, work in zip(of_job, works, strict=True) if work == usual]
        if others:
            words = sorted({a[0] for work, _ in others for a, b in zip(work, usual, strict=True) if a != b})
            sentences.append(
                f"{job}: {len(of_job) - count} launches differ from most in {', '.join(words)}; they do not count."
            )
    return same, sentences


def _node_class(
    launches: Sequence[LaunchRecords],
    nodes: Mapping[str, FleetNode],
    rows: pl.DataFrame,
    patterns: Mapping[str, str],
    resources: Sequence[str],
) -> NodeClass:
    hosts = {launch.host for launch in launches}
    names = [name for name in nodes if name in hosts]
    jobs = list(dict.fromkeys(launch.job for launch in launches))
    counts = Counter(uid for uid, _ in {(launch.run_id, launch.host) for launch in launches})
    screened = min(uid for uid, n in counts.items() if n == max(counts.values()))
    uids = [screened, *sorted(counts.keys() - {screened})]
    logs = np.full((len(uids), len(names), len(jobs)), np.nan)
    at = np.full(logs.shape, -1, np.int64)
    places = [{key: index for index, key in enumerate(keys)} for keys in (uids, names, jobs)]
    first: dict[str, int] = {}
    for launch in launches:
        place = tuple(of[key] for of, key in zip(places, (launch.run_id, launch.host, launch.job), strict=True))
        slowest, at[place] = min((rate, row) for rate, row in zip(launch.rates, launch.at, strict=True) if rate)
        logs[place] = np.log(slowest)
        first.setdefault(launch.job, launch.at[0])
    numbered = dict(rows.select("at", "version").iter_rows())
    versions = [numbered.get(first[job]) or job for job in jobs]
    known = [resource_of(job, patterns) for job in jobs]
    return NodeClass(
        nodes=[nodes[name] for name in names],
        jobs=jobs,
        screening=logs[0],
        rounds=logs[1:],
        at=at,
        resources=np.array([resources.index(name) if name else -1 for name in known], np.intp),
        works=np.unique(np.array(versions), return_inverse=True)[1],
        screened=screened,
    )


def digest_groups(frame: pl.DataFrame) -> dict[tuple[str, ...], dict[str, str]]:
    """Return the loss digests of equal work with equal seeds on equal hardware and software, by node.

    Of several tenants each is a group: their seeds differ.
    """
    equal = ["name", "unique_id", "gpu", "processors", "sharers", "software", "precision", "kernels"]
    known = frame.filter((pl.col("loss_digest") != "") & (pl.col("unique_id") != "") & pl.col("completed"))
    parts = known.with_columns(seeded=pl.col("loss_digest").str.extract(r"^(\d+\.\d+)\.", 1))
    groups: dict[tuple[str, ...], dict[str, str]] = defaultdict(dict)
    for node, digest, *key in parts.select("hostname", "loss_digest", *equal, "seeded").iter_rows():
        groups[tuple(map(str, key))][node] = digest
    return groups
