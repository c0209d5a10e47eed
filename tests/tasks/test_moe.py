"""What a mixture of experts keeps from one step to the next."""

from __future__ import annotations

from tasks.loading import SMALL, built, of

PLACE = "natural_language_processing/moe"


def test_no_layer_holds_the_graph_of_a_step() -> None:
    benchmark, run = built(of(PLACE), **SMALL[PLACE])
    loss = benchmark.step(run, next(iter(benchmark.batches(run))))
    assert loss.requires_grad
    balances = [layer.balance for layer in benchmark.routed]
    assert not any(balance.requires_grad for balance in balances)
    assert all(balance > 0 for balance in balances)
    # The routers learn of it all the same.
    assert all(layer.router.weight.grad.abs().sum() > 0 for layer in benchmark.routed)
