"""Feed-forward layers, and the layers that decoders, GPT-2, ViT and Whisper's encoder are made of."""

from __future__ import annotations

from typing import Any, TypeVar

from torch import Tensor, nn
from torch.nn import functional as F

from cotenant.layers.attention import Attention

Module = TypeVar("Module", bound=nn.Module)


class RMSNorm(nn.RMSNorm):
    """torch's (Zhang and Sennrich 2019), in the type of its weights, which may be more exact than its input."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.to(self.weight.dtype))


class FeedForward(nn.Module):
    """Two linear layers with GELU between them; `approximate="tanh"` is GPT-2's form of it."""

    def __init__(self, width: int, inner: int, approximate: str = "none") -> None:
        super().__init__()
        self.into, self.out = nn.Linear(width, inner), nn.Linear(inner, width)
        self.approximate = approximate

    def forward(self, x_blw: Tensor) -> Tensor:
        return self.out(F.gelu(self.into(x_blw), approximate=self.approximate))


class SwiGLU(nn.Module):
    """A gated feed-forward layer without biases (Shazeer 2020): out(silu(gate x) * up x).

    One product makes both, and the gate's rows of weights stand first.
    """

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.gate_up = nn.Linear(width, 2 * inner, bias=False)
        self.out = nn.Linear(inner, width, bias=False)

    def forward(self, x_blw: Tensor) -> Tensor:
        gate, up = self.gate_up(x_blw).chunk(2, dim=-1)
        return self.out(F.silu(gate) * up)


class ResidualLayer(nn.Module):
    """Attention and a feed-forward layer, each behind a norm and added to its input."""

    attention_norm: nn.Module
    attention: nn.Module
    feed_forward_norm: nn.Module
    feed_forward: nn.Module

    def forward(self, x_blw: Tensor, *attended: Any) -> Tensor:
        """Return (b, l, w); `attended` is given to the attention beside its input."""
        x_blw = x_blw + self.attention(self.attention_norm(x_blw), *attended)
        return x_blw + self.feed_forward(self.feed_forward_norm(x_blw))


class PreNormLayer(ResidualLayer):
    """A residual layer with LayerNorms (Radford 2019)."""

    def __init__(
        self, width: int, heads: int, *, causal: bool = False, approximate: str = "none", eps: float = 1e-5
    ) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(width, eps=eps)
        self.attention = Attention(width, heads, causal=causal)
        self.feed_forward_norm = nn.LayerNorm(width, eps=eps)
        self.feed_forward = FeedForward(width, 4 * width, approximate)


def initialised(model: Module) -> Module:
    """Return the model with weights of N(0, 0.02^2) in linear layers and tables, and biases of 0."""
    for part in model.modules():
        if isinstance(part, (nn.Linear, nn.Embedding)):
            nn.init.normal_(part.weight, std=0.02)
        if isinstance(part, nn.Linear) and part.bias is not None:
            nn.init.zeros_(part.bias)
    return model


def decayed(model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Return an optimizer's two groups of trained weights: matrices decay, and biases and norms do not."""
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    return [
        {"params": [weight for weight in trained if weight.dim() > 1], "weight_decay": weight_decay},
        {"params": [weight for weight in trained if weight.dim() < 2], "weight_decay": 0.0},
    ]
