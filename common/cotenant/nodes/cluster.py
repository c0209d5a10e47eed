"""This host's number among several, and its launcher: by flags, by torchrun's variables, or by Slurm's."""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from cotenant.choices import Launcher
from cotenant.errors import CotenantError
from cotenant.nodes import slurm
from cotenant.procfs import read_text
from cotenant.text import endpoint, is_host

USUAL_PORT = 29400
"""torchrun's default port, for a rendezvous endpoint that names none."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """This is node `node` of `nodes`; the ranks of each launch meet at `host`:`port`, an address of node 0."""

    nodes: int
    node: int
    host: str
    port: int

    @property
    def endpoint(self) -> str:
        return endpoint(self.host, self.port)

    def follows(self, nodes: int) -> bool | None:
        """Return whether this node follows node 0 in a launch on the first `nodes` (0: all), which node 0 does not;
        None if such a launch has one node, or leaves this one out."""
        return None if nodes == 1 or 0 < nodes <= self.node else self.node > 0


@dataclass(frozen=True, slots=True)
class ClusterFlags:
    """The flags for several hosts; None and "" if they were not given."""

    launcher: Launcher = "auto"
    nodes: int | None = None
    node: int | None = None
    endpoint: str = ""


def launcher_of(flags: ClusterFlags, environ: Mapping[str, str] = os.environ) -> Launcher:
    """Return the launcher: the flag's, else the one that the other flags and the environment imply; a single host is
    `local`.

    Raises CotenantError if it cannot be used here, or with these flags.
    """
    launcher = flags.launcher
    if launcher == "auto":
        if flags.endpoint or _is_torchrun(environ):
            launcher = "torchrun"
        elif flags.nodes:
            launcher = "ray" if flags.node is None and environ.get("RAY_ADDRESS") else "torchrun"
        else:
            launcher = "slurm" if slurm.nodes_of(environ) > 1 else "local"
    if launcher == "ray" and flags.nodes is None:
        raise CotenantError("--launcher ray needs --nnodes.", "Say on how many nodes of the cluster it runs.")
    if launcher == "ray" and (flags.node is not None or flags.endpoint):
        raise CotenantError(
            "--launcher ray places the nodes by itself.", "Leave out --node-rank and --rdzv-endpoint: Ray knows them."
        )
    if launcher == "slurm" and not slurm.in_job(environ):
        raise CotenantError(
            "--launcher slurm: this is no Slurm job.", "Start it by sbatch or salloc: docs/clusters.md has a script."
        )
    if launcher == "local" and (flags.nodes or 1) > 1:
        raise CotenantError(f"--launcher local is one host, and --nnodes {flags.nodes} are more.", "Use torchrun.")
    return launcher


def cluster_of(flags: ClusterFlags, environ: Mapping[str, str] = os.environ) -> Cluster | None:
    """Return this host's place among several; None if it is the only one. Raises CotenantError."""
    launcher = launcher_of(flags, environ)
    if launcher == "local" or (launcher == "slurm" and not slurm.in_step(environ)):
        return None
    if launcher == "ray":
        raise CotenantError("--launcher ray runs suites, and nothing else.", "Use --launcher torchrun on each node.")
    node: int | None
    if launcher == "slurm":
        nodes, node, host, port = slurm.place_of_step(environ)
    else:
        nodes, node, host, port = _by_torchrun(flags, environ)
    if nodes == 1:
        return None
    if node is None:
        node = _node_by_address(host, nodes)
    if not 0 <= node < nodes:
        raise CotenantError(f"--node-rank {node} is none of {nodes} nodes.", f"Count from 0 to {nodes - 1}.")
    return Cluster(nodes, node, host, port)


def needs_srun(flags: ClusterFlags, environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether this is the script of a Slurm job of several nodes, before srun starts a runner on each."""
    several = slurm.nodes_of(environ) > 1 and not slurm.in_step(environ)
    return several and launcher_of(flags, environ) == "slurm"


def _is_torchrun(environ: Mapping[str, str]) -> bool:
    several = environ.get("WORLD_SIZE", "1") != "1" and "RANK" in environ and "MASTER_ADDR" in environ
    return "TORCHELASTIC_RUN_ID" in environ or several


def _by_torchrun(flags: ClusterFlags, environ: Mapping[str, str]) -> tuple[int, int | None, str, int]:
    """Return the number of nodes, this node's number, host and port, by flags, torchrun or a training operator."""
    if flags.nodes is not None:
        if flags.nodes > 1 and not flags.endpoint:
            raise CotenantError("--nnodes needs --rdzv-endpoint.", "Name an address and a port of node 0: HOST:PORT.")
        node = flags.node
        if node is None and "GROUP_RANK" in environ:
            node = int(environ["GROUP_RANK"])
        return (flags.nodes, node, *parsed_endpoint(flags.endpoint or "127.0.0.1"))
    if not _is_torchrun(environ):
        raise CotenantError("--launcher torchrun needs --nnodes and --rdzv-endpoint.", "Or start it by torchrun.")
    if int(environ.get("LOCAL_WORLD_SIZE", "1")) != 1:
        raise CotenantError(
            f"There are {environ['LOCAL_WORLD_SIZE']} runners on this node, and one makes all slices.",
            "Start torchrun with --nproc-per-node 1.",
        )
    # Without torchrun's agents, each node has one rank. torchrun's store may listen at the master's own port.
    nodes = int(environ.get("GROUP_WORLD_SIZE", environ.get("WORLD_SIZE", "1")))
    node = int(environ.get("GROUP_RANK", environ.get("RANK", "0")))
    return nodes, node, environ.get("MASTER_ADDR", "127.0.0.1"), int(environ.get("MASTER_PORT", USUAL_PORT)) + 1


def boot_id() -> str:
    """Return the identifier of the kernel's boot: nodes with the same one are one machine."""
    return read_text(Path("/proc/sys/kernel/random/boot_id"))


def parsed_endpoint(endpoint: str) -> tuple[str, int]:
    """Return host and port of `HOST:PORT`, `HOST` or `[ADDRESS]:PORT`. Raises CotenantError."""
    host, colon, port = endpoint.rpartition(":")
    if not colon or "]" in port:
        host, port = endpoint, str(USUAL_PORT)
    if not port.isdecimal() or not 0 < int(port) < 1 << 16 or not is_host(host):
        raise CotenantError(f"--rdzv-endpoint {endpoint} is no HOST:PORT.", "As node0:29400, or [fd00::1]:29400.")
    return host.strip("[]"), int(port)


def _node_by_address(host: str, nodes: int) -> int:
    """Return 0 on the host that has the endpoint's address, and 1 on the other of two. Raises CotenantError."""
    if interface_of(addresses_of(host)):
        return 0
    if nodes == 2:
        return 1
    raise CotenantError(f"Nothing says which of {nodes} nodes this is.", f"Give --node-rank, 1 to {nodes - 1}.")


def addresses_of(host: str) -> list[str]:
    """Return the addresses of a host's name. Raises CotenantError for an unknown one."""
    try:
        return list(dict.fromkeys(str(entry[4][0]) for entry in socket.getaddrinfo(host, None)))
    except (OSError, UnicodeError) as error:  # UnicodeError: a name with an empty label, such as `a..b`
        raise CotenantError(f"--rdzv-endpoint: the host {host} cannot be resolved.", "Name an address.") from error


def interface_of(addresses: Sequence[str]) -> str:
    """Return the network interface of this host that has one of these addresses; "" if none has."""
    wanted = {ipaddress.ip_address(address.partition("%")[0]) for address in addresses}
    name: str
    for name, addrs in psutil.net_if_addrs().items():
        ips = [entry.address.partition("%")[0] for entry in addrs if entry.family in (socket.AF_INET, socket.AF_INET6)]
        if wanted & {ipaddress.ip_address(address) for address in ips}:
            return name
    return ""


def interface_towards(host: str) -> str:
    """Return the interface by which this host reaches another; "" if there is no way."""
    for address in addresses_of(host):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect((address, 9))  # A datagram socket sends nothing here.
            except OSError:
                continue
            return interface_of([probe.getsockname()[0]])
    return ""
