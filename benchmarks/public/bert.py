"""transformers' BERT with a layer for spans, in the place of tasks/question_answering/bert's model."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from transformers import BertConfig, BertForQuestionAnswering

OF_LAYER = {
    "attention.out": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "feed_forward.into": "intermediate.dense",
    "feed_forward.out": "output.dense",
    "feed_forward_norm": "output.LayerNorm",
}
OF_EMBEDDING = {
    "word": "word_embeddings",
    "position": "position_embeddings",
    "kind": "token_type_embeddings",
    "norm": "LayerNorm",
}


class Model(nn.Module):
    """transformers's equal of `BertForSpans`; `ours` returns its weights under the names in `BertForSpans`."""

    def __init__(self, words: int, layers: int, width: int, heads: int, inner: int, dropout: float) -> None:
        super().__init__()
        config = BertConfig(
            vocab_size=words,
            num_hidden_layers=layers,
            hidden_size=width,
            num_attention_heads=heads,
            intermediate_size=inner,
            hidden_dropout_prob=dropout,
            attention_probs_dropout_prob=dropout,
            attn_implementation="sdpa",
        )
        self.network: Any = BertForQuestionAnswering(config)

    def forward(self, word_bl: torch.Tensor, kind_bl: torch.Tensor) -> torch.Tensor:
        states_blw = self.network.bert(input_ids=word_bl, token_type_ids=kind_bl)[0]
        logits_bl2: torch.Tensor = self.network.qa_outputs(states_blw)
        return logits_bl2

    def ours(self) -> dict[str, torch.Tensor]:
        theirs = self.network.state_dict()
        pairs = {f"embedding.{ours}": f"bert.embeddings.{name}" for ours, name in OF_EMBEDDING.items()}
        pairs["ends"] = "qa_outputs"
        for layer in range(len(self.network.bert.encoder.layer)):
            before = f"bert.encoder.layer.{layer}."
            pairs |= {f"layers.{layer}.{ours}": before + name for ours, name in OF_LAYER.items()}
        state = {
            f"{ours}.{kind}": theirs[f"{name}.{kind}"]
            for ours, name in pairs.items()
            for kind in ("weight", "bias")
            if f"{name}.{kind}" in theirs
        }
        for layer in range(len(self.network.bert.encoder.layer)):
            for kind in ("weight", "bias"):
                parts = (
                    theirs[f"bert.encoder.layer.{layer}.attention.self.{p}.{kind}"] for p in ("query", "key", "value")
                )
                state[f"layers.{layer}.attention.qkv.{kind}"] = torch.cat([*parts])
        return state
