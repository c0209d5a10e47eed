"""transformers' GPT-2 in the place of tasks/natural_language_processing/gpt's model."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel

OF_LAYER = {
    "attention_norm": "ln_1",
    "attention.qkv": "attn.c_attn",
    "attention.out": "attn.c_proj",
    "feed_forward_norm": "ln_2",
    "feed_forward.into": "mlp.c_fc",
    "feed_forward.out": "mlp.c_proj",
}


class Model(nn.Module):
    """transformers's equal of `GPT`, without dropout; `ours` returns its weights under the names in `GPT`."""

    def __init__(self, words: int, context: int, layers: int, width: int, heads: int) -> None:
        super().__init__()
        config = GPT2Config(
            vocab_size=words,
            n_positions=context,
            n_layer=layers,
            n_embd=width,
            n_head=heads,
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
            bos_token_id=None,
            eos_token_id=None,
            use_cache=False,
            attn_implementation="sdpa",
        )
        self.network: Any = GPT2LMHeadModel(config)

    def forward(self, tokens_bl: torch.Tensor) -> torch.Tensor:
        logits_blv: torch.Tensor = self.network(tokens_bl).logits
        return logits_blv

    def ours(self) -> dict[str, torch.Tensor]:
        body = self.network.transformer
        state = {"words.weight": body.wte.weight, "positions.weight": body.wpe.weight}
        state |= {f"norm.{kind}": getattr(body.ln_f, kind) for kind in ("weight", "bias")}
        for index, layer in enumerate(body.h):
            for ours, theirs in OF_LAYER.items():
                for kind in ("weight", "bias"):
                    # transformers stores these weights as (in, out).
                    value = getattr(layer.get_submodule(theirs), kind)
                    state[f"layers.{index}.{ours}.{kind}"] = value.T if value.dim() == 2 else value
        return state
