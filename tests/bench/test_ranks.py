"""How many processes a benchmark over several devices takes, and how they meet."""

import os
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from torch.distributed.elastic.rendezvous import RendezvousParameters

from cotenant.bench.meeting import BACKEND, HostsRendezvous
from cotenant.bench.ranks import launcher_flags, number_of_ranks
from cotenant.launch.environment import free_ports, node_variables
from patience import HANG_S

FOUR = {"DEVICE_TOTAL": "4"}
ALONE = 0
"""No launcher: the benchmark runs in the process itself."""


@pytest.mark.parametrize(
    ("words", "environ", "seen", "ranks"),
    [
        # flags, variables, devices that torch sees (None: it must not be asked), processes
        ("", FOUR, None, 4),
        ("--half 'a b'", {}, 8, 8),
        ("--half", {}, 0, 1),
        ("--devices 0", FOUR, None, 4),
        ("--devices 3 'a b'", FOUR, None, 3),
        ("--devices=2", FOUR, None, 2),
        ("--devices 1 --devices 2", FOUR, None, 2),
        ("--devices 4", {}, None, 4),
        ("--devices 0", {}, 8, 8),
        ("--devices=0", {}, 0, 1),
        ("--devices many", FOUR, None, ALONE),
        ("--devices", FOUR, None, ALONE),
        ("--devices 9", FOUR, None, ALONE),
        ("--parallel dp", FOUR, None, ALONE),
        ("--parallel=dp --devices 2", FOUR, None, ALONE),
        ("--parallel ddp --parallel dp", FOUR, None, ALONE),
        ("--parallel dp --parallel=fsdp", FOUR, None, 4),
        ("--network dp", FOUR, None, 4),
    ],
)
def test_processes_are_as_many_as_devices(words: str, environ: dict[str, str], seen: int | None, ranks: int) -> None:
    def count() -> int:
        assert seen is not None
        return seen

    assert number_of_ranks(shlex.split(words), environ, count) == ranks


def test_ranks_meet_at_the_address_the_runner_gives() -> None:
    bound = f"--rdzv_backend={BACKEND}"
    assert launcher_flags(2, {}) == ["--nproc_per_node=2", bound, "--rdzv_endpoint=127.0.0.1:29500"]
    elsewhere = {"MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29512"}
    assert launcher_flags(1, elsewhere)[1:] == [bound, "--rdzv_endpoint=10.0.0.1:29512"]
    assert launcher_flags(1, {"MASTER_ADDR": "::1"})[1:] == [bound, "--rdzv_endpoint=[::1]:29500"]
    several = elsewhere | {"PET_NNODES": "2"}
    assert launcher_flags(1, several)[1:] == ["--master_addr=10.0.0.1", "--master_port=29512"]
    assert launcher_flags(1, several | {"COTENANT_NODE": "{}"})[1:] == [bound, "--rdzv_endpoint=10.0.0.1:29512"]


def test_the_store_of_one_host_listens_at_its_address_alone() -> None:
    port = free_ports(1)
    given = RendezvousParameters(BACKEND, f"127.0.0.1:{port}", "run", 1, 1)
    met = HostsRendezvous(given, None).next_rendezvous()
    assert (met.rank, met.world_size) == (0, 1)
    assert met.bootstrap_store_info.master_port == port
    met.store.set("key", "value")
    assert met.store.get("key") == b"value"
    # Every address of 127.0.0.0/8 is this host's: 127.0.0.2 stands for an address that other hosts reach.
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", port), 5)


@pytest.mark.slow
def test_ranks_of_one_host_listen_on_the_loopback_alone(tmp_path: Path) -> None:
    """Other hosts must reach neither the store nor gloo; both listen, and all listening addresses are checked."""
    ranks, main, port = 2, tmp_path / "main.py", free_ports(1)
    main.write_text(LISTENING)
    environ = os.environ | node_variables(None, 0) | {"MASTER_PORT": str(port), "DEVICE_TOTAL": str(ranks)}
    line = [sys.executable, "-m", "cotenant.bench.ranks", str(main)]
    ended = subprocess.run(line, env=environ, capture_output=True, text=True, timeout=HANG_S, check=True)
    listening = set(ended.stdout.split())
    assert f"0100007F:{port:04X}" in listening, ended.stdout
    assert len(listening) > ranks
    assert {address.partition(":")[0] for address in listening} == {"0100007F"}


LISTENING = """
import os
from pathlib import Path

import torch
from torch import distributed

distributed.init_process_group("gloo")
distributed.all_reduce(torch.ones(1))
fds = [fd for pid in (os.getpid(), os.getppid()) for fd in Path(f"/proc/{pid}/fd").iterdir() if fd.is_symlink()]
sockets = {os.readlink(fd) for fd in fds}
for name in ("tcp", "tcp6"):
    for words in map(str.split, Path("/proc/net", name).read_text().splitlines()[1:]):
        if words[3] == "0A" and f"socket:[{words[9]}]" in sockets:
            print(words[1], flush=True)
distributed.barrier()
"""
"""A rank that prints the addresses at which it and its launcher listen, in the form of proc_pid_net(5)."""
