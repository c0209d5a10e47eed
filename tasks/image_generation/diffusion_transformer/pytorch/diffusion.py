"""Noise in a thousand steps, and the loss of a model that takes it out (Nichol and Dhariwal 2021).

"Improved denoising diffusion probabilistic models", L_hybrid: the error of the noise, and the variational bound, which
trains the variances only. Times are drawn from 1 on: the bound's first term, the last step to pixels, is left out.
"""

import math

import torch
from torch import nn
from torch.nn import functional as F

TIMES = 1000


class Diffusion(nn.Module):
    """The schedule of the thousand steps: betas from 1e-4 to 0.02, and tables computed from them."""

    def __init__(self) -> None:
        super().__init__()
        beta = torch.linspace(1e-4, 0.02, TIMES, dtype=torch.float64, device="cpu")
        kept = (1 - beta).cumprod(0)
        before = torch.cat((kept.new_ones(1), kept[:-1]))
        # The variance of x(t-1) given x(0) and x(t).
        variance = beta * (1 - before) / (1 - kept)
        tables = {
            "signal": kept.sqrt(),
            "noise": (1 - kept).sqrt(),
            "log_beta": beta.log(),
            "log_variance": variance.clamp(min=float(variance[1])).log(),
            # The difference between two means of x(t-1) over the difference between their noises.
            "mean_of_noise": beta / ((1 - kept).sqrt() * (1 - beta).sqrt()),
        }
        for name, table in tables.items():
            self.register_buffer(name, table.float(), persistent=False)

    def forward(self, model, x_bchw, class_b):
        """Return the loss of the model at random times of these images."""
        time_b = torch.randint(1, TIMES, (len(x_bchw),), device=x_bchw.device)
        noise = torch.randn_like(x_bchw)
        signal, share, log_beta, log_variance, of_noise = (table[time_b, None, None, None] for table in self.buffers())
        predicted, place = model(signal * x_bchw + share * noise, time_b, class_b).float().chunk(2, dim=1)
        between = (place + 1) / 2
        log_model = between * log_beta + (1 - between) * log_variance
        # The variances learn from the bound, the noise does not.
        distance = of_noise * (predicted.detach() - noise)
        ratio = log_variance - log_model
        bound = (-ratio - 1 + ratio.exp() + distance.square() * (-log_model).exp()) / (2 * math.log(2))
        return F.mse_loss(predicted, noise) + bound.mean()
