"""transformers' Llama in the place of `Decoder`, which tasks/natural_language_processing/llama trains."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM

from cotenant.layers.decoder import EPS, DecoderSize

OF_LAYER = {
    "attention_norm": ["input_layernorm"],
    "attention.qkv": ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"],
    "attention.out": ["self_attn.o_proj"],
    "feed_forward_norm": ["post_attention_layernorm"],
    "feed_forward.gate_up": ["mlp.gate_proj", "mlp.up_proj"],
    "feed_forward.out": ["mlp.down_proj"],
}


class Model(nn.Module):
    """transformers's equal of `Decoder`; `ours` returns its weights under the names in `Decoder`."""

    def __init__(self, size: DecoderSize) -> None:
        super().__init__()
        config = LlamaConfig(
            vocab_size=size.words,
            hidden_size=size.width,
            intermediate_size=size.inner,
            num_hidden_layers=size.layers,
            num_attention_heads=size.heads,
            num_key_value_heads=size.kv_heads,
            max_position_embeddings=size.context,
            rms_norm_eps=EPS,
            rope_parameters={"rope_type": "default", "rope_theta": size.theta},
            tie_word_embeddings=size.tied,
            bos_token_id=None,
            eos_token_id=None,
            use_cache=False,
            attn_implementation="sdpa",
        )
        self.network: Any = LlamaForCausalLM(config)

    def forward(self, tokens_bl: torch.Tensor) -> torch.Tensor:
        logits_blv: torch.Tensor = self.network(tokens_bl).logits
        return logits_blv

    def ours(self) -> dict[str, torch.Tensor]:
        body = self.network.model
        state = {
            "embedding.weight": body.embed_tokens.weight,
            "norm.weight": body.norm.weight,
            "words.weight": self.network.lm_head.weight,
        }
        for index, layer in enumerate(body.layers):
            for ours, theirs in OF_LAYER.items():
                parts = [layer.get_submodule(name).weight for name in theirs]
                state[f"layers.{index}.{ours}.weight"] = torch.cat(parts)
        return state
