"""Three network namespaces as hosts: torchrun over veth pairs, and a link that is cut in the middle of a launch."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cotenant.bench.together import SILENCE_S
from nodes.emulated import Nodes, nodes
from tenants.suites import TENANTS, until

pytestmark = pytest.mark.slow
NAMES = [f"ct{os.getpid()}n{node}" for node in range(3)]
ADDRESSES = [f"10.77.0.{node + 1}" for node in range(3)]
READY_S = 60
ENDED_S = SILENCE_S + 40


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


def hosts() -> None:
    """Make the namespaces: a bridge lies in the first, a veth pair leads from it to each of the others."""
    for name in NAMES:
        ip("netns", "add", name)
        ip("-n", name, "link", "set", "lo", "up")
    ip("-n", NAMES[0], "link", "add", "name", "lan", "type", "bridge")
    ip("-n", NAMES[0], "addr", "add", f"{ADDRESSES[0]}/24", "dev", "lan")
    ip("-n", NAMES[0], "link", "set", "lan", "up")
    for node in (1, 2):
        port = f"to{node}"
        ip("link", "add", "name", port, "netns", NAMES[0], "type", "veth", "peer", "name", "eth", "netns", NAMES[node])
        ip("-n", NAMES[0], "link", "set", port, "master", "lan", "up")
        ip("-n", NAMES[node], "addr", "add", f"{ADDRESSES[node]}/24", "dev", "eth")
        ip("-n", NAMES[node], "link", "set", "eth", "up")


@pytest.fixture
def three(tmp_path: Path) -> Iterator[Nodes]:
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces take root and iproute2")
    try:
        try:
            hosts()
        except subprocess.CalledProcessError as error:
            pytest.skip(f"no network namespaces with veth and a bridge here: {error.stderr.strip()}")
        with nodes(tmp_path, [["ip", "netns", "exec", name] for name in NAMES], ADDRESSES[0]) as made:
            yield made
    finally:
        for name in NAMES:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


def test_a_cut_link_ends_the_launch_within_its_limit(three: Nodes) -> None:
    args: dict[str, Any] = {"--repeat": 1000, "--number": 50, "--batch-size": 8}
    endless = {"name": "cut", "cmd": str(TENANTS / "ddp.sh"), "cgroup": "all", "args": args}
    three.start([endless], "--ready-timeout", READY_S)
    log = three.leader.output / "logs" / "cut.R0.T0.log"
    until(lambda: log.exists() and "Batch Loss" in log.read_text(), "ranks train", READY_S, three.said)
    ip("-n", NAMES[0], "link", "set", "to2", "down")
    assert three.ended(ENDED_S) == [1, 1, 1], three.said()
    (record,) = three.leader.records()
    assert (record["outcome"], record["completed"]) == ("node_lost", False)
    assert re.match(r"Node 2 \(.*\) is lost: its rank 2 .* or its link is cut\.", record["message"])
    assert [node["node"] for node in record["meters"]["nodes"]] == [1, 2]
    assert len(record["observations"]) > 0
    assert "Rank 0 on Node 0 (" in three.suites[2].said()
