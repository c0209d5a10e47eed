"""Proximal policy optimisation (Schulman et al. 2017) on thousands of cart-poles that live on the device.

python main.py --batch-size 8192 --steps 16
"""

from collections.abc import Iterator

import torch
from torch import nn
from torch.distributions import Categorical
from torch.nn import functional as F

from cotenant.bench import Distributed, Run, flag, main

SEEN, ACTIONS = 4, 2
GRAVITY, CART, POLE, HALF, FORCE, TAU = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02
FAR, TILTED, LONGEST = 2.4, 12 * torch.pi / 180, 500
GAMMA, LAMBDA, CLIP, ENTROPY, NORM = 0.99, 0.95, 0.2, 0.01, 0.5


class CartPoles(nn.Module):
    """CartPole-v1 (Barto et al. 1983), n of them side by side; a pole that falls or is done starts a new episode."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.register_buffer("state_ns", torch.empty(n, SEEN).uniform_(-0.05, 0.05))
        self.register_buffer("age_n", torch.zeros(n))

    def move(self, action_n):
        """Push all carts left (0) or right (1); return a mask of the ended episodes. Each move is worth 1."""
        _, speed, angle, turning = self.state_ns.unbind(1)
        force = FORCE * (2 * action_n - 1)
        cosine, sine = angle.cos(), angle.sin()
        push = (force + POLE * HALF * turning**2 * sine) / (CART + POLE)
        bend = (GRAVITY * sine - cosine * push) / (HALF * (4 / 3 - POLE * cosine**2 / (CART + POLE)))
        pull = push - POLE * HALF * bend * cosine / (CART + POLE)
        change = torch.stack((speed, pull, turning, bend), dim=1)
        moved_ns, age_n = self.state_ns + TAU * change, self.age_n + 1
        ended_n = (moved_ns[:, 0].abs() > FAR) | (moved_ns[:, 2].abs() > TILTED) | (age_n >= LONGEST)
        anew_ns = torch.empty_like(moved_ns).uniform_(-0.05, 0.05)
        self.state_ns.copy_(torch.where(ended_n[:, None], anew_ns, moved_ns))
        self.age_n.copy_(age_n * ~ended_n)
        return ended_n


def drawn(policy: Categorical) -> torch.Tensor:
    """Return an action each: of exponential clocks with these rates, the one that rings first.

    Unlike `policy.sample` it reads nothing on the host.
    """
    return (policy.probs / torch.empty_like(policy.probs).exponential_()).argmax(-1)


def perceptron(out: int, units: int) -> nn.Sequential:
    """Return two layers of tanh units and a linear one."""
    return nn.Sequential(nn.Linear(SEEN, units), nn.Tanh(), nn.Linear(units, units), nn.Tanh(), nn.Linear(units, out))


class ActorCritic(nn.Module):
    """Two networks: one for the next action, one for the expected reward."""

    def __init__(self, units: int) -> None:
        super().__init__()
        self.actor, self.critic = perceptron(ACTIONS, units), perceptron(1, units)

    def forward(self, seen_s):
        """Return logits of the actions (n, 2) and the value of the state seen (n, 1)."""
        return self.actor(seen_s), self.critic(seen_s)


class DevicePPO(Distributed):
    """One step = all carts moved `steps` times by the policy, and `epochs` passes of updates over that."""

    item = "environment step"
    replicable = False  # The carts move on one device.

    batch_size: int = flag(8192, "--batch-size", "-b", help="cart-poles side by side")
    steps: int = flag(16, help="moves of each between updates")
    epochs: int = flag(4, help="passes over what was seen")
    minibatches: int = flag(4, help="updates in a pass")
    units: int = flag(64, help="units of each hidden layer")
    lr: float = flag(3e-4, help="learning rate")

    def build(self, run: Run) -> None:
        self.model = self.distribute(run, ActorCritic(self.units))
        self.carts = run.place(CartPoles(self.batch_size))
        self.optimizer = run.adam(self.model.parameters(), lr=self.lr, eps=1e-5)

    def batches(self, run: Run) -> Iterator[torch.Tensor]:
        """Return the visible state of the carts, which a step moves."""
        return run.resident(self.carts.state_ns)

    def items(self, batch: torch.Tensor) -> int:
        return self.batch_size * self.steps

    def step(self, run: Run, batch: torch.Tensor) -> torch.Tensor:
        played = self.play()
        # Some versions of torch reuse the 16-bit copies of weights made without a gradient, and learning needs one.
        torch.clear_autocast_cache()
        loss = batch.new_zeros(())
        for _ in range(self.epochs):
            order = torch.randperm(self.items(batch), device=batch.device)
            for chosen in order.chunk(self.minibatches):
                loss = self.loss(*(part[chosen] for part in played))
                run.update(loss, self.optimizer, clip_norm=NORM)
        return loss

    @torch.no_grad()
    def play(self) -> list[torch.Tensor]:
        """Return states, actions, their log probabilities, advantages and returns, all moves in one dimension."""
        seen, done, chance, value, ended = [], [], [], [], []
        for _ in range(self.steps):
            seen.append(self.carts.state_ns.clone())
            logits, expected = self.model(seen[-1])
            policy = Categorical(logits=logits.float(), validate_args=False)
            done.append(drawn(policy))
            chance.append(policy.log_prob(done[-1]))
            value.append(expected.float().squeeze(1))
            ended.append(self.carts.move(done[-1]))
        following = self.model(self.carts.state_ns)[1].float().squeeze(1)
        advantage, ahead = [], torch.zeros_like(following)
        for at in reversed(range(self.steps)):
            goes_on = (~ended[at]).float()
            surprise = 1 + GAMMA * following * goes_on - value[at]
            ahead = surprise + GAMMA * LAMBDA * goes_on * ahead
            advantage.append(ahead)
            following = value[at]
        gain, value = torch.stack(advantage[::-1]), torch.stack(value)
        return [
            part.flatten(0, 1)
            for part in (torch.stack(seen), torch.stack(done), torch.stack(chance), gain, gain + value)
        ]

    def loss(self, seen, done, chance, gain, expected) -> torch.Tensor:
        """Return the clipped loss of the policy, half the error of the values, and a reward for trying."""
        logits, value = self.model(seen)
        policy = Categorical(logits=logits.float(), validate_args=False)
        gain = (gain - gain.mean()) / (gain.std() + 1e-8)
        ratio = (policy.log_prob(done) - chance).exp()
        clipped = torch.minimum(ratio * gain, ratio.clamp(1 - CLIP, 1 + CLIP) * gain)
        return F.mse_loss(value.float().squeeze(1), expected) / 2 - clipped.mean() - ENTROPY * policy.entropy().mean()

    def flops(self, batch: torch.Tensor) -> float:
        first, rest = 2 * SEEN * self.units, 2 * self.units**2 + self.units * (ACTIONS + 1)
        played = 2 * (first + rest) * (self.batch_size * (self.steps + 1))
        # Forward, and backward by weights and by input; the first layers need no gradient of their input.
        return played + self.epochs * self.items(batch) * (4 * first + 6 * rest)


if __name__ == "__main__":
    main(DevicePPO)
