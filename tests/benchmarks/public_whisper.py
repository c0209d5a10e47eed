"""transformers' Whisper in the place of tasks/speech_recognition/whisper's model."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from transformers import WhisperConfig, WhisperForConditionalGeneration

OF_LAYER = {
    "attention_norm": "self_attn_layer_norm",
    "attention.out": "self_attn.out_proj",
    "cross_norm": "encoder_attn_layer_norm",
    "cross.query": "encoder_attn.q_proj",
    "cross.key": "encoder_attn.k_proj",
    "cross.value": "encoder_attn.v_proj",
    "cross.out": "encoder_attn.out_proj",
    "feed_forward_norm": "final_layer_norm",
    "feed_forward.into": "fc1",
    "feed_forward.out": "fc2",
}


class Model(nn.Module):
    """transformers's equal of `Whisper`, without dropout; `ours` returns its weights under the names in `Whisper`."""

    def __init__(self, mels: int, frames: int, words: int, tokens: int, layers: int, width: int, heads: int) -> None:
        super().__init__()
        config = WhisperConfig(
            vocab_size=words,
            num_mel_bins=mels,
            max_source_positions=frames // 2,
            max_target_positions=tokens,
            encoder_layers=layers,
            decoder_layers=layers,
            d_model=width,
            encoder_attention_heads=heads,
            decoder_attention_heads=heads,
            encoder_ffn_dim=4 * width,
            decoder_ffn_dim=4 * width,
            dropout=0.0,
            pad_token_id=0,
            bos_token_id=0,
            eos_token_id=0,
            decoder_start_token_id=0,
            use_cache=False,
            attn_implementation="sdpa",
        )
        self.network: Any = WhisperForConditionalGeneration(config)

    def forward(self, mel_bmf: torch.Tensor, tokens_bl: torch.Tensor) -> torch.Tensor:
        logits_blv: torch.Tensor = self.network(input_features=mel_bmf, decoder_input_ids=tokens_bl).logits
        return logits_blv

    def ours(self) -> dict[str, torch.Tensor]:
        encoder, decoder = self.network.model.encoder, self.network.model.decoder
        state = {"words.weight": decoder.embed_tokens.weight, "places": decoder.embed_positions.weight}
        parts = {"first": encoder.conv1, "second": encoder.conv2}
        parts |= {"encoder_norm": encoder.layer_norm, "decoder_norm": decoder.layer_norm}
        for side, layers in (("encoder", encoder.layers), ("decoder", decoder.layers)):
            for index, layer in enumerate(layers):
                before, own = f"{side}.{index}.", layer.self_attn
                state[before + "attention.qkv.weight"] = torch.cat(
                    [p.weight for p in (own.q_proj, own.k_proj, own.v_proj)]
                )
                state[before + "attention.qkv.query_bias"] = own.q_proj.bias
                state[before + "attention.qkv.value_bias"] = own.v_proj.bias
                names = {ours: theirs for ours, theirs in OF_LAYER.items() if side == "decoder" or "cross" not in ours}
                parts |= {before + ours: layer.get_submodule(theirs) for ours, theirs in names.items()}
        for name, part in parts.items():
            state |= {f"{name}.{kind}": value for kind, value in part.named_parameters()}
        return state
