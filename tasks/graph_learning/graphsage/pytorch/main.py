"""GraphSAGE (Hamilton et al. 2017) finds the class of nodes of a large graph from samples of their neighbourhoods.

python main.py --batch-size 1024 --graph-nodes 2449029 --degree 25 --fan-out 15 10 5
"""

from collections.abc import Iterator
from itertools import accumulate, pairwise

import torch
from torch import nn
from torch.nn import functional as F

from cotenant.bench import Distributed, Run, flag, main
from cotenant.layers.data import scattered

FEATURES, CLASSES = 100, 47
SHOWN = 4.0
"""The mean of the one feature of a node that shows its class; the others have mean 0."""
DRAWN_AT_ONCE = 2**22  # neighbours

Batch = tuple[torch.Tensor, torch.Tensor]


class Graph:
    """A directed graph in compressed sparse rows; n nodes, e edges.

    The node of rank r (from 1) has degree / 2 * sqrt(n / r) neighbours, which are drawn in proportion to theirs: the
    degrees of a network that grows by preferential attachment (Barabasi and Albert 1999), with a tail that falls as
    degree ** -3. Ranks are scattered over the nodes, so that nodes of high degree are not neighbours in memory.
    """

    def __init__(self, nodes: int, degree: int) -> None:
        rank_n = torch.arange(nodes)
        degree_n = torch.empty(nodes, dtype=torch.int64)
        degree_n[scattered(rank_n, nodes)] = (degree / 2 * (nodes / (rank_n + 1)).sqrt()).round().clamp_(min=1).long()
        self.first_n = F.pad(degree_n.cumsum(0), (1, 0)).int()
        """The index of each node's first neighbour, then the number of edges (n + 1)."""
        self.neighbours_e = torch.empty(int(self.first_n[-1]), dtype=torch.int32)
        for part in self.neighbours_e.split(DRAWN_AT_ONCE):
            # A degree that falls with the root of the rank is the density of a uniform number's square.
            part.copy_(scattered((torch.rand(len(part)).square_() * nodes).long().clamp_(max=nodes - 1), nodes))

    def sampled(self, nodes_b: torch.Tensor, fan_out: int) -> torch.Tensor:
        """Return `fan_out` neighbours of each node, (b, fan_out): uniform draws with replacement."""
        first_b = self.first_n.index_select(0, nodes_b)
        degree_b = self.first_n.index_select(0, nodes_b + 1) - first_b
        drawn_bf = (torch.rand(len(nodes_b), fan_out) * degree_b[:, None]).int()
        return self.neighbours_e.index_select(0, (first_b[:, None] + drawn_bf).flatten()).view(-1, fan_out)


class GraphSAGE(nn.Module):
    """A layer for each hop: a node beside the mean of its sampled neighbours, through one linear layer."""

    def __init__(self, hidden: int, fan_out: tuple[int, ...]) -> None:
        super().__init__()
        self.fan_out = fan_out
        widths = (FEATURES, *[hidden] * (len(fan_out) - 1), CLASSES)
        self.layers = nn.ModuleList(nn.Linear(2 * into, out) for into, out in pairwise(widths))

    def forward(self, x_nf: torch.Tensor) -> torch.Tensor:
        """Return logits (seeds, classes) from the features of the nodes of all hops, the seeds' first."""
        sizes = [*hops(1, self.fan_out)]
        seeds = len(x_nf) // sum(sizes)
        for depth, layer in enumerate(self.layers):
            # Each of the remaining hops reads the next one; the last one is not needed again.
            left = len(self.layers) - depth
            hops_nf = x_nf.split([size * seeds for size in sizes[: left + 1]])
            means = [
                hop_nf.unflatten(0, (-1, fan)).mean(1)
                for hop_nf, fan in zip(hops_nf[1:], self.fan_out[:left], strict=True)
            ]
            x_nf = layer(torch.cat((x_nf[: -len(hops_nf[-1])], torch.cat(means)), dim=1))
            if left > 1:
                x_nf = F.relu(x_nf)
        return x_nf


def hops(seeds: int, fan_out: tuple[int, ...]) -> Iterator[int]:
    """Return the number of nodes of each hop, beginning with the seeds."""
    return accumulate((seeds, *fan_out), int.__mul__)


class NodeClassification(Distributed):
    """One step = one Adam update on seed nodes and the features of their sampled neighbours, three hops away."""

    item = "seed node"
    replicable = False  # The nodes of all hops form one dimension.

    batch_size: int = flag(1024, "--batch-size", "-b", help="seed nodes in one batch")
    graph_nodes: int = flag(2_449_029, help="nodes of the graph")
    degree: int = flag(25, help="neighbours of a node, on the average")
    fan_out: tuple[int, ...] = flag((15, 10, 5), help="neighbours drawn for a node of each hop")
    hidden: int = flag(256, help="width of the hidden layers")
    lr: float = flag(0.003, help="learning rate")

    def build(self, run: Run) -> None:
        self.network = GraphSAGE(self.hidden, self.fan_out)
        self.model = self.distribute(run, self.network)
        self.optimizer = run.adam(self.model.parameters(), lr=self.lr)

    def batches(self, run: Run) -> Iterator[Batch]:
        """Return classes (b,) and features (n, 100) of the nodes of all hops, which come from the host's memory.

        The loader's processes sample neighbours, and this one gathers features: node numbers can be sent from process
        to process fast enough, 375 MB of features per batch cannot.
        """
        graph = Graph(self.graph_nodes, self.degree)
        class_n = torch.randint(CLASSES, (self.graph_nodes,))
        features_nf = torch.randn(self.graph_nodes, FEATURES)
        features_nf.scatter_add_(1, class_n[:, None], torch.full((self.graph_nodes, 1), SHOWN))

        def neighbourhoods(seeds: list[int]) -> torch.Tensor:
            found = [torch.tensor(seeds, dtype=torch.int32)]
            for fan in self.fan_out:
                found.append(graph.sampled(found[-1], fan).flatten())
            return torch.cat(found)

        pinned = run.chosen.is_accelerator
        rows = sum(hops(self.batch_size, self.fan_out))
        for nodes_n in run.loader(range(self.graph_nodes), neighbourhoods, on_host=True):
            # Nothing waits for the copy to a device, so each batch has its own memory; torch reuses it.
            gathered_nf = torch.empty(rows, FEATURES, pin_memory=pinned)
            torch.index_select(features_nf, 0, nodes_n, out=gathered_nf)
            yield run.to_device(class_n[nodes_n[: self.batch_size]]), run.to_device(gathered_nf)

    def step(self, run: Run, batch: Batch) -> torch.Tensor:
        class_b, features_nf = batch
        loss = F.cross_entropy(self.model(features_nf).float(), class_b)
        run.update(loss, self.optimizer)
        return loss

    def flops(self, batch: Batch) -> float:
        sizes = [*hops(self.batch_size, self.fan_out)]
        total = 0
        for depth, layer in enumerate(self.network.layers):
            # Forward, and backward by weights and by input; the first layer needs no gradient of its input.
            total += 2 * (3 if depth else 2) * layer.weight.numel() * sum(sizes[: -1 - depth])
        return total


if __name__ == "__main__":
    main(NodeClassification)
