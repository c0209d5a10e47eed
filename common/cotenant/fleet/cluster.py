"""A Ray cluster whose nodes run our runner: an actor on each node reports its news. Ray is an optional dependency."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cotenant.checkout import CHECKOUT, INSTALLED, SOURCE_ROOT
from cotenant.errors import CotenantError
from cotenant.fleet import node as on_node
from cotenant.fleet.node import SET_ASIDE, News, NodeRunner
from cotenant.results.store import write_whole

PLACING_S, WAIT_S = 60.0, 5.0
UNHIDDEN = {f"RAY_EXPERIMENTAL_NOSET_{name}_VISIBLE_DEVICES": "1" for name in ("CUDA", "HIP", "ROCR")}
"""These keep Ray from hiding GPUs, although none is asked for: the runner hands out the devices itself."""


class RayCluster:
    """A running Ray cluster, with an actor on each living node.

    `nodes` has the addresses of answering nodes by their names, `silent` the names of the others.
    """

    def __init__(self, address: str) -> None:
        """Connect, and start the actors. Raises CotenantError without Ray, cluster or answering node."""
        self._ray = ray = _ray(address)
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        ray.cloudpickle.register_pickle_by_value(on_node)
        kind = ray.remote(num_cpus=1, runtime_env={"env_vars": UNHIDDEN})(NodeRunner)
        ids = [node["NodeID"] for node in ray.nodes() if node["Alive"]]
        places = [NodeAffinitySchedulingStrategy(node, soft=False) for node in ids]
        actors = {node: kind.options(scheduling_strategy=at).remote() for node, at in zip(ids, places, strict=True)}
        first = {actor.news.remote(0.0): node for node, actor in actors.items()}
        ready, _ = ray.wait(list(first), num_returns=len(first), timeout=PLACING_S)
        answering = {first[answer] for answer in ready if not isinstance(self._taken(answer), str)}
        # A node that has died is listed for some seconds.
        alive = sorted(_named([node for node in ray.nodes() if node["Alive"]]).items())
        self.nodes = {name: str(node["NodeManagerAddress"]) for name, node in alive if node["NodeID"] in answering}
        self.silent = [name for name, _ in alive if name not in self.nodes]
        if not self.nodes:
            remedy = "Each needs a free CPU: `ray status` shows the nodes and their work."
            raise CotenantError(f"No node of the Ray cluster at '{address}' answers.", remedy)
        self._actors = {name: actors[node["NodeID"]] for name, node in alive if name in self.nodes}
        self._asked: dict[Any, str] = {}

    def start(self, name: str, folder: Path, words: Sequence[str], base: Path, files: Mapping[str, bytes]) -> str:
        """Start our program in a folder of a node, with this BASE; return why it cannot be started, or ""."""
        variables = {"BASE": str(base)} | ({} if INSTALLED else {"PYTHONPATH": str(SOURCE_ROOT)})
        return str(self._taken(self._actors[name].start.remote(str(folder), tuple(words), variables, dict(files))))

    def news(self, names: frozenset[str]) -> Iterator[tuple[str, News | str]]:
        """Yield each of these nodes that has news, with the news or, if it is lost, the reason; return after some
        seconds without."""
        waiting = set(self._asked.values())
        self._asked |= {self._actors[name].news.remote(WAIT_S): name for name in names - waiting}
        self._ray.wait(list(self._asked), num_returns=1, timeout=2 * WAIT_S)
        # Take all answers that are ready: with thousands of nodes one at a time would be slow.
        ready, _ = self._ray.wait(list(self._asked), num_returns=len(self._asked), timeout=0)
        for answer in ready:
            yield self._asked.pop(answer), self._taken(answer)

    def _taken(self, answer: Any) -> Any:
        """Return a node's answer, or as a text the reason why there is none."""
        try:
            return self._ray.get(answer, timeout=PLACING_S)
        except self._ray.exceptions.RayError as error:
            return _reason(error)

    def free_port(self, name: str) -> int:
        """Return a free port of a node. Raises CotenantError."""
        port = self._taken(self._actors[name].free_port.remote())
        if isinstance(port, str):
            raise CotenantError(f"{name}: {port}")
        return int(port)

    def stop(self, names: frozenset[str]) -> None:
        """Interrupt the runners on these nodes, and wait a while until they have ended."""
        stopping = [self._actors[name].stop.remote() for name in names]
        self._ray.wait(stopping, num_returns=len(stopping), timeout=on_node.GRACE_S + WAIT_S)

    def close(self) -> None:
        """Stop all that still runs there, and leave."""
        self.stop(frozenset(self._actors))
        self._ray.shutdown()


def _ray(address: str) -> Any:
    try:
        import ray
    except ImportError as error:
        remedy = "pip install ray, in the environment of this program and on every node."
        raise CotenantError("The package 'ray' is missing.", remedy) from error
    try:
        ray.init(address=address, logging_level=logging.ERROR, log_to_driver=False)
    except (ConnectionError, ValueError, RuntimeError) as error:
        remedy = "`ray start --head` on one node and `ray start --address HOST:6379` on the others make one."
        raise CotenantError(f"No Ray cluster answers at '{address}': {_reason(error)}", remedy) from error
    return ray


def _named(nodes: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Return Ray's nodes by the name given to `ray start`, else by host name; a repeated name gets the node's id."""
    named: dict[str, Mapping[str, Any]] = {}
    for node in nodes:
        given = node["NodeName"] if node.get("NodeName") != node["NodeManagerAddress"] else ""
        name = re.sub(r"[^A-Za-z0-9._-]", "_", given or node["NodeManagerHostname"])
        named[f"{name}-{node['NodeID'][:8]}" if name in named else name] = node
    return named


def _reason(error: Exception) -> str:
    """Return the line of Ray's long error that names a node or a death, else the first."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    cause = next((line for line in lines if "node" in line.lower() or "died" in line.lower()), "")
    return (cause or (lines[0] if lines else type(error).__name__))[:200]


def job_file(path: Path) -> tuple[str, dict[str, bytes]]:
    """Return the value of `--jobs` on a node, and the file by its name unless the node's checkout has it."""
    shipped = path.resolve().parent in (CHECKOUT, CHECKOUT / "profiles")
    return path.name, {} if shipped else {path.name: path.read_bytes()}


def keep_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write the files that a node has sent, and remove records that its runner set aside. Raises CotenantError."""
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        write_whole(folder / name, content)
        if name.endswith(SET_ASIDE):
            (folder / name.rpartition(".")[0]).unlink(missing_ok=True)
