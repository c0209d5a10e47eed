"""Proximal policy optimisation on Pong, written as a plain script."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from ale_py.vector_env import AtariVectorEnv
from torch import nn
from torch.distributions import Categorical


def orthogonal(layer: nn.Module, gain: float = 2**0.5) -> nn.Module:
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer


class ActorCritic(nn.Module):
    def __init__(self, actions: int) -> None:
        super().__init__()
        self.trunk = nn.Sequential(
            orthogonal(nn.Conv2d(4, 32, 8, 4)),
            nn.ReLU(),
            orthogonal(nn.Conv2d(32, 64, 4, 2)),
            nn.ReLU(),
            orthogonal(nn.Conv2d(64, 32, 3)),
            nn.ReLU(),
            nn.Flatten(),
            orthogonal(nn.Linear(32 * 7 * 7, 512)),
            nn.ReLU(),
        )
        self.actor, self.critic = orthogonal(nn.Linear(512, actions), 0.01), orthogonal(nn.Linear(512, 1), 1.0)

    def forward(self, frames: torch.Tensor) -> tuple[Categorical, torch.Tensor]:
        hidden = self.trunk(frames / 255)
        return Categorical(logits=self.actor(hidden), validate_args=False), self.critic(hidden).squeeze(1)


def script(batch_size: int, num_steps: int, seed: int = 0) -> Iterator[Any]:
    """Yield the model, then the last minibatch's loss of each update."""
    games = AtariVectorEnv(
        "pong", batch_size, repeat_action_probability=0.0, stack_num=4, img_height=84, img_width=84,
        autoreset_mode="SameStep",
    )  # fmt: skip
    policy = ActorCritic(games.single_action_space.n)
    optimizer = torch.optim.Adam(policy.parameters(), lr=2.5e-4, eps=1e-5, fused=True)
    frames = torch.empty(num_steps, batch_size, 4, 84, 84, dtype=torch.uint8)
    actions = torch.empty(num_steps, batch_size, dtype=torch.long)
    log_probabilities, values, rewards, goes_on, advantages = torch.empty(5, num_steps, batch_size)
    seen, played = torch.from_numpy(games.reset(seed=seed)[0]), 0
    yield policy
    while True:
        optimizer.param_groups[0]["lr"] = 2.5e-4 * (1 - played / 10_000_000)
        played += num_steps * batch_size
        with torch.no_grad():
            for t in range(num_steps):
                frames[t] = seen
                choice, values[t] = policy(seen)
                actions[t] = choice.sample()
                log_probabilities[t] = choice.log_prob(actions[t])
                pixels, reward, lost, cut, _ = games.step(actions[t].numpy())
                seen, rewards[t] = torch.from_numpy(pixels), torch.from_numpy(reward)
                goes_on[t] = torch.from_numpy(~(lost | cut))
            following, advantage = policy(seen)[1], torch.zeros(batch_size)
            for t in reversed(range(num_steps)):
                error = rewards[t] + 0.99 * goes_on[t] * following - values[t]
                advantages[t] = advantage = error + 0.99 * 0.95 * goes_on[t] * advantage
                following = values[t]
            returns = advantages + values
            normalised = (advantages - advantages.mean()) / (advantages.std() + 1e-5)
        rollout = [part.flatten(0, 1) for part in (frames, actions, log_probabilities, values, returns, normalised)]
        for _ in range(4):
            for rows in torch.randperm(num_steps * batch_size).chunk(4):
                frames_b, actions_b, old_log_b, old_values_b, returns_b, advantages_b = (part[rows] for part in rollout)
                choice, values_b = policy(frames_b)
                ratio = torch.exp(choice.log_prob(actions_b) - old_log_b)
                policy_loss = -torch.min(ratio * advantages_b, ratio.clamp(0.9, 1.1) * advantages_b).mean()
                clipped = old_values_b + (values_b - old_values_b).clamp(-0.1, 0.1)
                value_loss = torch.max((values_b - returns_b) ** 2, (clipped - returns_b) ** 2).mean() / 2
                loss = 0.5 * value_loss + policy_loss - 0.01 * choice.entropy().mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
                optimizer.step()
        yield loss
