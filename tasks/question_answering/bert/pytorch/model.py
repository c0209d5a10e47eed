"""BERT with two outputs per position: does an answer begin, or end, here?

Devlin et al. 2019, "BERT: pre-training of deep bidirectional transformers for language understanding". Shapes:
b batch, l positions, w width. There is no pooler, which spans do not need, and no mask: no sequence is padded.
"""

import torch
from torch import nn

from cotenant.layers.attention import Attention
from cotenant.layers.layers import FeedForward, initialised

POSITIONS, KINDS = 512, 2
EPSILON = 1e-12


class BertForSpans(nn.Module):
    """Embeddings, post-norm layers and the output; 108,893,186 parameters as base, 334,094,338 as large."""

    def __init__(self, words: int, layers: int, width: int, heads: int, inner: int, dropout: float) -> None:
        super().__init__()
        self.embedding = Embedding(words, width, dropout)
        self.layers = nn.ModuleList(PostNormLayer(width, heads, inner, dropout) for _ in range(layers))
        self.ends = nn.Linear(width, 2)
        initialised(self)

    def forward(self, word_bl: torch.Tensor, kind_bl: torch.Tensor) -> torch.Tensor:
        """Return the logits (b, l, 2) that the answer begins and that it ends at each position."""
        x_blw = self.embedding(word_bl, kind_bl)
        for layer in self.layers:
            x_blw = layer(x_blw)
        return self.ends(x_blw)


class Embedding(nn.Module):
    """The sum of three vectors: a word's, its position's, and one for question or context."""

    def __init__(self, words: int, width: int, dropout: float) -> None:
        super().__init__()
        self.word = nn.Embedding(words, width)
        self.position = nn.Embedding(POSITIONS, width)
        self.kind = nn.Embedding(KINDS, width)
        self.norm = nn.LayerNorm(width, eps=EPSILON)
        self.dropout = nn.Dropout(dropout)

    def forward(self, word_bl: torch.Tensor, kind_bl: torch.Tensor) -> torch.Tensor:
        x_blw = self.word(word_bl) + self.kind(kind_bl) + self.position.weight[: word_bl.size(1)]
        return self.dropout(self.norm(x_blw))


class PostNormLayer(nn.Module):
    """Attention and a feed-forward layer, each added to its input, with a LayerNorm after the sum."""

    def __init__(self, width: int, heads: int, inner: int, dropout: float) -> None:
        super().__init__()
        self.attention = Attention(width, heads, dropout=dropout)
        self.attention_norm = nn.LayerNorm(width, eps=EPSILON)
        self.feed_forward = FeedForward(width, inner)
        self.feed_forward_norm = nn.LayerNorm(width, eps=EPSILON)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x_blw: torch.Tensor) -> torch.Tensor:
        x_blw = self.attention_norm(x_blw + self.dropout(self.attention(x_blw)))
        return self.feed_forward_norm(x_blw + self.dropout(self.feed_forward(x_blw)))
