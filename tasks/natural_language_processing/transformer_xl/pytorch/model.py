"""Transformer-XL: causal attention over the present words and the kept states of earlier ones, by distance.

Dai et al. 2019, "Transformer-XL: attentive language models beyond a fixed-length context". Shapes: b batch, t target
positions, m positions of the memory, k = m + t, w width, n heads, d units of one head, v words.
"""

import torch
from torch import nn
from torch.nn import functional as F

from cotenant.layers.output import cross_entropy_of

INIT = 0.02


class TransformerXL(nn.Module):
    """One embedding for input and output, post-norm layers; 191,948,759 parameters as base, 519,963,095 as large."""

    def __init__(
        self,
        words: int,
        layers: int,
        width: int,
        heads: int,
        inner: int,
        target: int,
        memory: int,
        dropout: float,
        attention_dropout: float,
    ) -> None:
        super().__init__()
        self.heads = heads
        self.embedding = nn.Embedding(words, width)
        self.bias = nn.Parameter(torch.zeros(words))
        self.content_bias = nn.Parameter(torch.empty(heads, width // heads))  # u
        self.distance_bias = nn.Parameter(torch.empty(heads, width // heads))  # v
        self.layers = nn.ModuleList(Layer(width, heads, inner, dropout, attention_dropout) for _ in range(layers))
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("distance_kw", sinusoids(memory + target, width), persistent=False)
        self.register_buffer("mask_tk", unshifted_mask(memory, target), persistent=False)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=INIT)

    def forward(
        self, word_bt: torch.Tensor, memory_lbmw: torch.Tensor, next_bt: torch.Tensor
    ) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """Return the cross entropy of the word after each one, and the next memory of every layer."""
        states_btw, next_lbmw = self.states(word_bt, memory_lbmw)
        output = self.embedding.weight, self.bias
        return cross_entropy_of(states_btw.flatten(0, 1), *output, next_bt.flatten()), next_lbmw

    def states(self, word_bt: torch.Tensor, memory_lbmw: torch.Tensor) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """Return the last layer's output for each position (b, t, w), and the next memory of every layer."""
        width = self.embedding.embedding_dim
        x_btw = self.dropout(self.embedding(word_bt) * width**0.5)
        distance_kw = self.dropout(self.distance_kw)
        mask_rk = self.mask_tk.repeat(len(word_bt), 1)
        next_lbmw = []
        for layer, memory_bmw in zip(self.layers, memory_lbmw.to(x_btw.dtype), strict=True):
            seen_bkw = torch.cat([memory_bmw, x_btw], dim=1)
            next_lbmw.append(seen_bkw[:, x_btw.size(1) :].detach())
            x_btw = layer(x_btw, seen_bkw, distance_kw, mask_rk, self.content_bias, self.distance_bias)
        return self.dropout(x_btw), next_lbmw


class Memory(nn.Module):
    """The last states that every layer has read, in a tensor with a fixed address, which a CUDA graph needs."""

    def __init__(self, layers: int, batch: int, memory: int, width: int) -> None:
        super().__init__()
        self.register_buffer("states_lbmw", torch.zeros(layers, batch, memory, width), persistent=False)

    def keep(self, states_lbmw: list[torch.Tensor]) -> None:
        torch._foreach_copy_(list(self.states_lbmw.unbind()), states_lbmw)


class Layer(nn.Module):
    """Relative attention, then two products at each position; a norm after each residual."""

    def __init__(self, width: int, heads: int, inner: int, dropout: float, attention_dropout: float) -> None:
        super().__init__()
        self.heads, self.attention_dropout = heads, attention_dropout
        self.query = nn.Linear(width, width, bias=False)
        self.key_value = nn.Linear(width, 2 * width, bias=False)
        self.distance = nn.Linear(width, width, bias=False)  # W
        self.out = nn.Linear(width, width, bias=False)
        self.attention_norm = nn.LayerNorm(width)
        self.widening = nn.Linear(width, inner)
        self.narrowing = nn.Linear(inner, width)
        self.norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x_btw, seen_bkw, distance_kw, mask_rk, content_bias, distance_bias) -> torch.Tensor:
        attended_btw = self.attended(x_btw, seen_bkw, distance_kw, mask_rk, content_bias, distance_bias)
        x_btw = self.attention_norm(x_btw + self.dropout(self.out(attended_btw)))
        inner_bti = self.dropout(F.relu(self.widening(x_btw)))
        return self.norm(x_btw + self.dropout(self.narrowing(inner_bti)))

    def attended(self, x_btw, seen_bkw, distance_kw, mask_rk, content_bias, distance_bias) -> torch.Tensor:
        """Return the values of the positions seen, weighted by softmax of ((q + u) k + shift((q + v) W R)) / sqrt(d).

        The second term and the causal mask are a bias of scaled-dot-product attention, which adds the first.
        """
        heads = (self.heads, -1)
        query_btnd = self.query(x_btw).unflatten(2, heads)
        key_bnkd, value_bnkd = self.key_value(seen_bkw).unflatten(2, (2, *heads)).permute(2, 0, 3, 1, 4)
        distance_ndk = self.distance(distance_kw).unflatten(1, heads).permute(1, 2, 0)
        scale = query_btnd.size(3) ** -0.5
        by_distance_nrd = (query_btnd + distance_bias).flatten(0, 1).transpose(0, 1)
        bias_nrk = torch.baddbmm(mask_rk, by_distance_nrd, distance_ndk, alpha=scale)
        attended_bntd = F.scaled_dot_product_attention(
            (query_btnd + content_bias).transpose(1, 2),
            key_bnkd,
            value_bnkd,
            attn_mask=shifted(bias_nrk.unflatten(1, query_btnd.shape[:2])).transpose(0, 1),
            dropout_p=self.attention_dropout if self.training else 0.0,
            scale=scale,
        )
        return attended_bntd.transpose(1, 2).flatten(2)


def shifted(score: torch.Tensor) -> torch.Tensor:
    """Return scores (..., t, k) by position for scores (..., t, k + 1) by distance, the farthest one first; a view.

    Row i's scores move t - i places to the left. In memory that is the whole without its first t numbers, in rows one
    number shorter; the numbers that come from the next row's beginning belong to later positions, which are masked.
    """
    rows, columns = score.shape[-2:]
    return score.flatten(-2)[..., rows:].unflatten(-1, (rows, columns - 1))


def unshifted_mask(memory: int, target: int) -> torch.Tensor:
    """Return (t, k + 1) numbers that are, once shifted, minus infinity after each position and 0 up to it."""
    row_t1, column_k = torch.arange(target).unsqueeze(1), torch.arange(memory + target + 1)
    return torch.zeros(target, memory + target + 1).masked_fill(row_t1 + column_k < target, -torch.inf)


def sinusoids(farthest: int, width: int) -> torch.Tensor:
    """Return sines, then cosines, of every distance from the farthest to 0: (farthest + 1, width)."""
    rate_f = 10_000 ** (-torch.arange(0, width, 2) / width)
    angle_kf = torch.arange(farthest, -1, -1).unsqueeze(1) * rate_f
    return torch.cat([angle_kf.sin(), angle_kf.cos()], dim=1)
