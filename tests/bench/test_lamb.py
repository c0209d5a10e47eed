"""LAMB against its formula, tensor by tensor, and a scaler's verdict that the host does not read."""

from __future__ import annotations

import pytest
import torch

from cotenant.bench.lamb import LAMB, LONGEST

LR, EPS, BETA, BETA_2 = 0.1, 1e-6, 0.9, 0.999


def by_hand(weight: torch.Tensor, gradients: list[torch.Tensor], decay: float) -> torch.Tensor:
    """Return the weight after a step on each gradient: LAMB without bias correction (paper, version 3), in float64."""
    weight, mean, square = weight.double(), torch.zeros(()), torch.zeros(())
    for gradient in (each.double() for each in gradients):
        mean, square = BETA * mean + (1 - BETA) * gradient, BETA_2 * square + (1 - BETA_2) * gradient**2
        step = mean / (square.sqrt() + EPS) + decay * weight
        lengths = weight.norm().clamp(max=LONGEST), step.norm()
        ratio = lengths[0] / (lengths[1] + EPS) if all(length > 0 for length in lengths) else 1.0
        weight = weight - LR * ratio * step
    return weight


@pytest.mark.parametrize("decay", [0.0, 0.01])
def test_every_tensor_goes_as_far_as_its_own_length_allows(decay: float) -> None:
    torch.manual_seed(0)
    weights = [torch.randn(3, 4), 100 * torch.randn(50), torch.zeros(2), torch.randn(5)]
    trained = [torch.nn.Parameter(weight.clone()) for weight in weights]
    gradients = [[torch.randn_like(weight) for weight in weights[:3]] for _ in range(4)]
    optimizer = LAMB(trained, lr=LR, weight_decay=decay)
    for of_step in gradients:
        for weight, gradient in zip(trained, of_step, strict=False):
            weight.grad = gradient.clone()
        optimizer.step()
    for at, weight in enumerate(weights[:3]):
        expected = by_hand(weight, [of_step[at] for of_step in gradients], decay)
        torch.testing.assert_close(trained[at].double(), expected, rtol=1e-5, atol=1e-6)
    assert torch.equal(trained[3], weights[3]), "without a gradient it is left alone"


def test_lamb_undoes_the_loss_scale_and_skips_an_overflow() -> None:
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    weights = [torch.nn.Parameter(torch.ones(3)) for _ in range(2)]
    plain, scaled = (LAMB([weight], lr=LR) for weight in weights)
    (weights[0] * torch.arange(3.0)).sum().backward()
    plain.step()
    scaler.scale((weights[1] * torch.arange(3.0)).sum()).backward()
    scaler.step(scaled)
    scaler.update()
    torch.testing.assert_close(*weights)
    before = [weights[1].detach().clone(), *(part.clone() for part in scaled.state[weights[1]].values())]
    weights[1].grad = torch.tensor([torch.inf, torch.nan, 1.0])
    scaler.scale(torch.zeros(())), scaler.step(scaled), scaler.update()
    after = [weights[1].detach(), *scaled.state[weights[1]].values()]
    assert all(torch.equal(one, other) for one, other in zip(before, after, strict=True))
    assert scaler.get_scale() == 512
