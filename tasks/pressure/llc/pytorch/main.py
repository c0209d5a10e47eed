"""Pressure on the last-level cache: random walks over a table about as large as it. An item is an access.

python main.py --level 50 --times 0.5
"""

import torch

from cotenant.bench import Run, flag, main
from cotenant.bench.pressure import Pressure
from cotenant.machine.cpu import last_level_cache_bytes

WALKERS = 1 << 12
"""Few enough that their places fit into a core's own cache."""
USUAL_BYTES = 32 << 20


class CachePressure(Pressure):
    """Work is one step of every walker: the table's number at its place is its next place."""

    item = "access"

    size_kib: int = flag(0, help="of the table; 0: --times the last-level cache", least=0)
    times: float = flag(1.0, help="size of the table in last-level caches, 0.5 to 2")

    def prepare(self, run: Run) -> None:
        whole = last_level_cache_bytes() or USUAL_BYTES
        size_bytes = self.size_kib << 10 or round(self.times * whole)
        # A permutation, so that walkers never meet and stay spread over the whole table.
        self.table = torch.randperm(max(WALKERS, size_bytes // 8))
        self.places = torch.randperm(len(self.table))[:WALKERS]
        self.next_places = torch.empty_like(self.places)

    def work(self) -> float:
        torch.index_select(self.table, 0, self.places, out=self.next_places)
        self.places, self.next_places = self.next_places, self.places
        return WALKERS


if __name__ == "__main__":
    main(CachePressure)
