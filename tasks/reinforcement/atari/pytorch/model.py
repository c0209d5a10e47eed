"""The network of Mnih et al. (2015), with one head for the policy and one for the value."""

import torch
from torch import nn

STACK, SIDE = 4, 84


class ActorCritic(nn.Module):
    """4 frames of 84 x 84 -> three convolutions -> 512 -> logits of the actions, and a value."""

    def __init__(self, actions: int) -> None:
        super().__init__()
        relu = nn.init.calculate_gain("relu")
        self.trunk = nn.Sequential(
            orthogonal(nn.Conv2d(STACK, 32, 8, stride=4), relu),
            nn.ReLU(inplace=True),
            orthogonal(nn.Conv2d(32, 64, 4, stride=2), relu),
            nn.ReLU(inplace=True),
            orthogonal(nn.Conv2d(64, 32, 3), relu),
            nn.ReLU(inplace=True),
            nn.Flatten(),
            orthogonal(nn.Linear(32 * 7 * 7, 512), relu),
            nn.ReLU(inplace=True),
        )
        # The first policy is nearly uniform.
        self.actor = orthogonal(nn.Linear(512, actions), 0.01)
        self.critic = orthogonal(nn.Linear(512, 1), 1.0)

    def forward(self, frames_bfhw: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return log-probabilities (batch, actions) and values (batch,) in fp32 for frames of bytes."""
        hidden_bh = self.trunk(frames_bfhw / 255)
        log_probabilities_ba = self.actor(hidden_bh).float().log_softmax(dim=1)
        return log_probabilities_ba, self.critic(hidden_bh).float().squeeze(1)


def sample(log_probabilities_ba: torch.Tensor) -> torch.Tensor:
    """Return one action (batch, 1) each: of exponential clocks with these rates, the one that rings first.

    Unlike torch.multinomial it reads nothing on the host.
    """
    return (log_probabilities_ba.exp() / torch.empty_like(log_probabilities_ba).exponential_()).argmax(1, keepdim=True)


def orthogonal(layer: nn.Conv2d | nn.Linear, gain: float) -> nn.Conv2d | nn.Linear:
    """Return the layer with orthogonal weights and no bias at first."""
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer
