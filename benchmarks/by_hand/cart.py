"""REINFORCE on CartPole, written as a plain script."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium
import torch
from torch import nn
from torch.distributions import Categorical


def script(seed: int = 0) -> Iterator[Any]:
    """Yield the model, then for each action the loss if it ended an episode, else None."""
    policy = nn.Sequential(nn.Linear(4, 128), nn.ReLU(), nn.Linear(128, 2), nn.Softmax(dim=-1))
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
    environment = gymnasium.make("CartPole-v1")
    state, _ = environment.reset(seed=seed)
    log_probabilities, rewards = [], []
    yield policy
    while True:
        choice = Categorical(policy(torch.from_numpy(state)), validate_args=False)
        action = choice.sample()
        log_probabilities.append(choice.log_prob(action))
        state, reward, terminated, truncated, _ = environment.step(action.item())
        rewards.append(reward)
        if not (terminated or truncated):
            yield None
            continue
        returns, following = [], 0.0
        for reward in reversed(rewards):
            following = reward + 0.99 * following
            returns.insert(0, following)
        returns = torch.tensor(returns)
        returns = (returns - returns.mean()) / (returns.std(unbiased=False) + 1e-8)
        loss = -torch.sum(torch.stack(log_probabilities) * returns)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        log_probabilities, rewards = [], []
        state, _ = environment.reset()
        yield loss
