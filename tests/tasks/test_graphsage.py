"""GraphSAGE: its graph, its samples, and a network that reads each node's own neighbours."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tasks.loading import built, of

PLACE = "graph_learning/graphsage"
NODES, DEGREE = 2_000, 20


@pytest.fixture(scope="module")
def graph(main: Any) -> Any:
    torch.manual_seed(0)
    return main.Graph(NODES, DEGREE)


def test_degrees_fall_as_a_power_law(graph: Any) -> None:
    out = graph.first_n.diff()
    assert (out.min(), len(graph.neighbours_e)) == (DEGREE / 2, out.sum())
    assert out.float().mean() == pytest.approx(DEGREE, rel=0.05)
    # The share of nodes of at least a degree falls to a quarter where the degree doubles: a density of degree ** -3.
    for degree in (20, 40, 80):
        assert (out >= degree).float().mean() == pytest.approx((DEGREE / 2 / degree) ** 2, rel=0.1)
    known = torch.bincount(graph.neighbours_e, minlength=NODES)
    assert torch.corrcoef(torch.stack((out.float(), known.float())))[0, 1] > 0.9


def test_samples_are_neighbours_and_all_of_them_are_drawn(graph: Any) -> None:
    nodes = torch.tensor([0, 7, NODES - 1], dtype=torch.int32)
    drawn = graph.sampled(nodes, 5_000)
    for node, of_node in zip(nodes.tolist(), drawn, strict=True):
        own = graph.neighbours_e[graph.first_n[node] : graph.first_n[node + 1]]
        assert set(of_node.tolist()) == set(own.tolist())


@pytest.mark.usefixtures("one_thread")
def test_each_node_takes_the_mean_of_its_own_neighbours(main: Any) -> None:
    fan_out, seeds = (3, 2, 4), 2
    model = main.GraphSAGE(8, fan_out)
    sizes = [*main.hops(seeds, fan_out)]
    x = torch.randn(sum(sizes), main.FEATURES)

    def reached(hop: int, number: int, depth: int) -> torch.Tensor:
        """Return a node's features behind `depth` layers, by the definition (Hamilton et al. 2017, algorithm 1)."""
        if depth == 0:
            return x[sum(sizes[:hop]) + number]
        neighbours = range(number * fan_out[hop], (number + 1) * fan_out[hop])
        mean = torch.stack([reached(hop + 1, each, depth - 1) for each in neighbours]).mean(0)
        out = model.layers[depth - 1](torch.cat((reached(hop, number, depth - 1), mean)))
        return out.relu() if depth < len(fan_out) else out

    expected = torch.stack([reached(0, number, len(fan_out)) for number in range(seeds)])
    torch.testing.assert_close(model(x), expected)


@pytest.mark.slow
@pytest.mark.usefixtures("one_thread")
def test_it_learns_classes_of_nodes_it_has_not_seen() -> None:
    benchmark, run = built(of(PLACE), graph_nodes=4_000, batch_size=64, fan_out=(3, 2), hidden=64, lr=0.02, workers=0)
    batches = iter(benchmark.batches(run))
    losses = [benchmark.step(run, next(batches)) for _ in range(60)]  # Less than one pass over the nodes.
    assert sum(losses[-10:]) < sum(losses[:10]) / 2
