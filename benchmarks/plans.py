"""A plan of a large machine: less than a second of processor time, however many users share it."""

from __future__ import annotations

import sys
import time

from measure import Promise
from rich.console import Console
from rich.table import Table

from cotenant.isolation.plan import plan
from cotenant.machine.topology import Machine, NumaNode, Processor

SHAPES = ((256, 2048), (1024, 4096))
PROMISE = Promise("<", 1, "s")


def machine(nodes: int, processors: int) -> Machine:
    """A host with two threads to a core, siblings half of all processors apart, and eight nodes to a socket."""
    cores = processors // 2
    made = (
        Processor(number, number % cores, node // 8, node)
        for number in range(processors)
        for node in [number % cores * nodes // cores]
    )
    memory = tuple(NumaNode(node, 16 << 30) for node in range(nodes))
    return Machine("large", tuple(made), processors, memory, nodes * 16 << 30, None, (), "invented")


def main() -> int:
    table = Table("processors", "nodes", "slowest", "with users", "numbers of users", "promise", title="Plans")
    kept = True
    for nodes, processors in SHAPES:
        host, took = machine(nodes, processors), {}
        for users in (1, 2, 3, 7, 8, 255, nodes, processors // 2 - 1, processors, 2 * processors):
            begin_s = time.process_time()
            plan(host, users)
            took[users] = time.process_time() - begin_s
        worst = max(took, key=took.__getitem__)
        shown = (processors, nodes, f"{took[worst]:.2f} s", worst, len(took), PROMISE.verdict(took[worst]))
        table.add_row(*map(str, shown))
        kept = kept and PROMISE.kept(took[worst])
    Console(width=120).print(table)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
