"""REINFORCE on CartPole (Williams 1992): a tiny policy in a Python loop, bound by one processor.

python main.py --repeat 200 --number 500 --no-cuda
"""

import itertools
from collections.abc import Iterator
from typing import ClassVar

import torch
from torch import nn
from torch.distributions import Categorical

from cotenant.bench import Benchmark, Run, UnsupportedError, flag, main

EPSILON = 1e-8


class CartPole(Benchmark):
    """One step = one action in the environment; at the end of an episode, the policy is updated once."""

    item = "env step"
    ignored: ClassVar[dict[str, int]] = {"--log-interval": 1}

    fixed: ClassVar[dict[str, int]] = {"batch_size": 1}

    repeat: int = 200
    number: int = 500
    cuda: bool = flag(False, help="the policy on an accelerator; slower, as it waits after every step")
    gamma: float = flag(0.99, help="discount of later rewards")
    lr: float = flag(1e-2, help="learning rate")

    def build(self, run: Run) -> None:
        import gymnasium  # Here, so that its absence is reported as a missing package.

        if run.world.size > 1:
            raise UnsupportedError(
                f"The episodes of {run.world.size} ranks end at different steps, and the policy is updated there.",
                "Start it as one process.",
            )
        policy = nn.Sequential(nn.Linear(4, 128), nn.ReLU(), nn.Linear(128, 2), nn.Softmax(dim=-1))
        self.policy = run.place(policy)
        run.uneven = True  # Only the last step of an episode learns.
        run.observed["work_learned"] = True  # Better policies have longer episodes, with fewer updates.
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=self.lr)
        self.environment = gymnasium.make("CartPole-v1")
        self.state, _ = self.environment.reset(seed=self.seed)
        self.far = run.device.type != "cpu"
        self.log_probabilities: list[torch.Tensor] = []
        self.rewards: list[float] = []

    def batches(self, run: Run) -> Iterator[None]:
        return itertools.repeat(None)

    def items(self, batch: None) -> int:
        return 1

    def step(self, run: Run, batch: None) -> torch.Tensor | None:
        state = torch.from_numpy(self.state)
        if self.far:  # Even a move that does nothing costs half a percent of so small a step.
            state = state.to(run.device)
        # Unvalidated: checking that probabilities add up to one would read them on the host, twice a step.
        choice = Categorical(self.policy(state), validate_args=False)
        action = choice.sample()
        self.log_probabilities.append(choice.log_prob(action))
        # The environment lives on the host, so reading the action there is part of the task.
        self.state, reward, terminated, truncated, _ = self.environment.step(int(action))
        self.rewards.append(float(reward))
        return self.learn(run) if terminated or truncated else None

    def learn(self, run: Run) -> torch.Tensor:
        """Update the policy with the finished episode's normalised returns and begin the next one."""
        returns, following = [], 0.0
        for reward in reversed(self.rewards):
            following = reward + self.gamma * following
            returns.append(following)
        returns_t = torch.tensor(returns[::-1], device=run.device)
        returns_t = (returns_t - returns_t.mean()) / (returns_t.std(unbiased=False) + EPSILON)
        loss = -(torch.stack(self.log_probabilities) * returns_t).sum()
        run.update(loss, self.optimizer)
        self.log_probabilities.clear()
        self.rewards.clear()
        self.state, _ = self.environment.reset()
        return loss


if __name__ == "__main__":
    main(CartPole)
