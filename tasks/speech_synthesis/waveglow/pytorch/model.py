"""WaveGlow: invertible layers that turn speech into white noise, given its mel spectrogram.

Prenger et al. 2019, "WaveGlow: a flow-based generative network for speech synthesis"; invertible 1x1 convolutions of
Kingma and Dhariwal 2018 (Glow), gated dilated ones of van den Oord et al. 2016 (WaveNet). Shapes: b batch, m mel
bands, f mel frames, s samples, t groups of 8 samples, c channels of a group, h half of them, u units, l layers.
"""

import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

GROUP = 8
HOP, WINDOW = 256, 1024
EARLY_EVERY, EARLY = 4, 2
"""Before every fourth step of the flow, two channels leave it."""
KERNEL = 3


class WaveGlow(nn.Module):
    """A flow of some steps; 268,294,760 parameters with 80 bands, 12 steps, 8 layers and 512 units."""

    def __init__(self, bands: int, steps: int, layers: int, units: int) -> None:
        super().__init__()
        self.upsampling = nn.ConvTranspose1d(bands, bands, WINDOW, HOP)
        channels = [GROUP - EARLY * (step // EARLY_EVERY) for step in range(steps)]
        self.mixing = nn.ModuleList(Mixing(one) for one in channels)
        self.coupling = nn.ModuleList(Coupling(one // 2, bands, layers, units) for one in channels)

    def forward(self, wave_bs: torch.Tensor, mel_bmf: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the noise (b, c, t), and log |det| of the map from all waves to it, one number in fp32."""
        wave_bct = wave_bs.unflatten(1, (-1, GROUP)).transpose(1, 2)
        mel_bms = self.upsampling(mel_bmf)[..., : wave_bs.size(1)]
        condition_bct = mel_bms.unflatten(2, (-1, GROUP)).transpose(2, 3).flatten(1, 2)
        noise, scales = [], []
        for step, (mixing, coupling) in enumerate(zip(self.mixing, self.coupling, strict=True)):
            if step and step % EARLY_EVERY == 0:
                noise.append(wave_bct[:, :EARLY])
                wave_bct = wave_bct[:, EARLY:]
            wave_bct, scale_bht = coupling(mixing(wave_bct), condition_bct)
            scales.append(scale_bht.float().sum())
        groups = wave_bct.size(0) * wave_bct.size(2)
        determinant = torch.stack(scales).sum() + groups * self.mixing_determinant()
        return torch.cat([*noise, wave_bct], dim=1), determinant

    def mixing_determinant(self) -> torch.Tensor:
        """Return the sum of log |det W| over all mixing layers; layers of one size are computed together."""
        weights = [layer.weight.squeeze(2).float() for layer in self.mixing]
        alike = [weights[first : first + EARLY_EVERY] for first in range(0, len(weights), EARLY_EVERY)]
        return torch.stack([torch.linalg.slogdet(torch.stack(some)).logabsdet.sum() for some in alike]).sum()


class Mixing(nn.Conv1d):
    """An invertible convolution of kernel 1 over a group's channels, at first a rotation."""

    def __init__(self, channels: int) -> None:
        super().__init__(channels, channels, 1, bias=False)
        nn.init.orthogonal_(self.weight)


class Coupling(nn.Module):
    """Half of the channels decide how the other half is scaled and moved: gated dilated convolutions in layers."""

    def __init__(self, half: int, bands: int, layers: int, units: int) -> None:
        super().__init__()
        self.first = weight_norm(nn.Conv1d(half, units, 1))
        self.condition = weight_norm(nn.Conv1d(bands * GROUP, 2 * units * layers, 1))
        self.dilated = nn.ModuleList(
            weight_norm(nn.Conv1d(units, 2 * units, KERNEL, dilation=2**layer, padding=2**layer * (KERNEL // 2)))
            for layer in range(layers)
        )
        # Half of these channels go to the next layer, half to the output; the last layer has only the output.
        self.splitting = nn.ModuleList(
            weight_norm(nn.Conv1d(units, units if layer == layers - 1 else 2 * units, 1)) for layer in range(layers)
        )
        self.last = nn.Conv1d(units, 2 * half, 1)
        nn.init.zeros_(self.last.weight)
        nn.init.zeros_(self.last.bias)

    def forward(self, wave_bct: torch.Tensor, condition_bct: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the channels, the second half of them changed, and the logarithm of its scale (b, h, t)."""
        fixed_bht, changed_bht = wave_bct.chunk(2, dim=1)
        x_but, conditions = self.first(fixed_bht), self.condition(condition_bct).chunk(len(self.dilated), dim=1)
        output_but = None
        for dilated, splitting, condition_but in zip(self.dilated, self.splitting, conditions, strict=True):
            value_but, gate_but = (dilated(x_but) + condition_but).chunk(2, dim=1)
            split = splitting(torch.tanh(value_but) * torch.sigmoid(gate_but))
            if split.size(1) > x_but.size(1):
                onward_but, split = split.chunk(2, dim=1)
                x_but = x_but + onward_but
            output_but = split if output_but is None else output_but + split
        moved_bht, scale_bht = self.last(output_but).chunk(2, dim=1)
        return torch.cat([fixed_bht, changed_bht * scale_bht.exp() + moved_bht], dim=1), scale_bht
