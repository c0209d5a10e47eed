"""Cart-poles on the device move as Gymnasium's do, and the policy learns to keep the pole up."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from torch.distributions import Categorical

from tasks.loading import built, of

PLACE = "reinforcement/ppo"


def test_carts_move_as_gymnasiums(main: Any) -> None:
    carts, actions = main.CartPoles(3), torch.randint(2, (500, 3))
    environments = [gymnasium.make("CartPole-v1") for _ in range(3)]
    for row, environment in enumerate(environments):
        environment.reset()
        environment.unwrapped.state = carts.state_ns[row].double().numpy()  # type: ignore[attr-defined]
    ended, moves = [False] * 3, 0
    for action_n in actions:
        now = carts.move(action_n)
        for row, environment in enumerate(environments):
            if ended[row]:
                continue
            seen, _, fell, _, _ = environment.step(int(action_n[row]))
            assert bool(now[row]) == fell
            ended[row], moves = fell, moves + 1
            if fell:  # A new episode begins, nearly upright.
                assert carts.state_ns[row].abs().max() <= 0.05
                assert carts.age_n[row] == 0
            else:
                np.testing.assert_allclose(carts.state_ns[row], seen, rtol=1e-3, atol=1e-4)
    assert all(ended)
    assert moves > 3 * 8, "no pole falls sooner"


def test_an_episode_ends_after_500_moves(main: Any) -> None:
    carts = main.CartPoles(2)
    carts.age_n.copy_(torch.tensor([499.0, 3.0]))
    assert carts.move(torch.tensor([0, 1])).tolist() == [True, False]
    assert carts.age_n.tolist() == [0, 4]


@pytest.mark.slow
def test_it_learns_to_stay_up() -> None:
    benchmark, run = built(of(PLACE), batch_size=64, steps=32, lr=3e-3)
    batch = next(iter(benchmark.batches(run)))

    def falls() -> int:
        ended = 0
        for _ in range(200):
            with torch.no_grad():
                action_n = benchmark.model(benchmark.carts.state_ns)[0].argmax(-1)
            ended += int(benchmark.carts.move(action_n).sum())
        return ended

    before = falls()
    for _ in range(40):
        benchmark.step(run, batch)
    assert falls() < before / 2


def test_actions_are_drawn_as_often_as_they_are_likely(main: Any) -> None:
    torch.manual_seed(1)
    policy = Categorical(logits=torch.tensor([0.9, 0.1]).log().expand(20_000, 2), validate_args=False)
    actions = main.drawn(policy)
    assert actions.shape == (20_000,)
    assert actions.float().mean() == pytest.approx(0.1, abs=0.01)
