"""A mixture of experts (Jiang et al. 2024, "Mixtral"; Muennighoff et al. 2024, "OLMoE") learns the next token.

python main.py --batch-size 8 --precision bf16
"""

import torch
from torch import nn
from torch.nn import functional as F

from cotenant.bench import Run, flag, main
from cotenant.errors import CotenantError
from cotenant.layers.decoder import Decoder, DecoderSize
from cotenant.layers.language import NextToken
from cotenant.layers.layers import initialised

BALANCE = 0.01


class Experts(nn.Module):
    """Gated layers; a router chooses some for each token. The tokens of one expert are one product in a grouped one."""

    def __init__(self, size: DecoderSize, experts: int, active: int) -> None:
        super().__init__()
        self.experts, self.active = experts, active
        self.router = nn.Linear(size.width, experts, bias=False)
        self.gate_up = nn.Parameter(torch.empty(experts, size.width, 2 * size.inner).normal_(std=0.02))
        self.down = nn.Parameter(torch.empty(experts, size.inner, size.width).normal_(std=0.02))
        self.balance = torch.zeros(())

    def forward(self, x_blw):
        x_nw = x_blw.flatten(0, 1)
        chance_ne = self.router(x_nw).float().softmax(-1)
        weight_na, expert_na = chance_ne.topk(self.active, dim=-1)
        weight_na = weight_na / weight_na.sum(-1, keepdim=True)
        # Tokens in the order of their experts, so that each expert's tokens are contiguous.
        order = expert_na.flatten().argsort(stable=True)
        counts_e = F.one_hot(expert_na.flatten(), self.experts).sum(0)
        ends_e = counts_e.cumsum(0).to(torch.int32)
        token = order // self.active
        gate, up = grouped(x_nw[token], self.gate_up, ends_e).chunk(2, dim=-1)
        y = grouped(F.silu(gate) * up, self.down, ends_e)
        y = y * weight_na.flatten()[order, None].to(y.dtype)
        # Shares of tokens times mean probabilities (Fedus et al. 2022): least if all experts have equally many.
        share_e = counts_e / expert_na.numel()
        self.balance = self.experts * (share_e * chance_ne.mean(0)).sum()
        return torch.zeros_like(x_nw, dtype=y.dtype).index_add_(0, token, y).view_as(x_blw)


def grouped(x_nk, weight_ekm, ends_e):
    """Return each expert's rows of x times its weights, in autocast's type: autocast ignores grouped products."""
    kind = x_nk.device.type
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else weight_ekm.dtype
    return F.grouped_mm(x_nk.to(dtype), weight_ekm.to(dtype), offs=ends_e)


class MixtureOfExperts(NextToken):
    """One step = one AdamW update on whole sequences; each token goes through some of every layer's experts."""

    item = "token"
    replicable = False  # The balance of its experts stays in the replicas.

    batch_size = 8
    layers, width, heads = 16, 1024, 16
    experts: int = flag(32, help="experts of a layer")
    active: int = flag(4, help="experts that a token goes through")
    inner: int = flag(704, help="units of an expert")
    lr = 4e-4

    def build(self, run: Run) -> None:
        if self.active > self.experts:
            raise CotenantError(f"--active {self.active} are more than --experts {self.experts}.")
        size = DecoderSize(
            self.layers, self.width, self.heads, self.heads, self.inner, self.words, self.context, tied=True
        )
        with run.device:
            model = initialised(Decoder(size, lambda size: Experts(size, self.experts, self.active)))
        self.routed = [layer.feed_forward for layer in model.layers]
        self.train(run, model)

    def loss(self, batch: torch.Tensor) -> torch.Tensor:
        loss = super().loss(batch)
        balances = [layer.balance for layer in self.routed]
        for layer in self.routed:
            # Undetached it would keep this step's graph, bound to this step's stream: no other stream could record it.
            layer.balance = layer.balance.detach()
        return loss + BALANCE * sum(balances) / self.layers

    def flops(self, batch: torch.Tensor) -> float:
        w = self.width
        layer = 4 * w**2 + self.experts * w + self.active * 3 * w * self.inner
        return self.dense_flops(batch, self.layers * layer + self.words * w)


if __name__ == "__main__":
    main(MixtureOfExperts)
