"""torchvision's vision Transformer in the place of tasks/image_classification/vit's model."""

from __future__ import annotations

import torch
from torch import nn
from torchvision.models import VisionTransformer

OF_LAYER = {
    "attention_norm.": "ln_1.",
    "attention.qkv.": "self_attention.in_proj_",
    "attention.out.": "self_attention.out_proj.",
    "feed_forward_norm.": "ln_2.",
    "feed_forward.into.": "mlp.0.",
    "feed_forward.out.": "mlp.3.",
}


class Model(nn.Module):
    """torchvision's equal of `ViT`; `ours` returns its weights under the names in `ViT`."""

    def __init__(self, size: int, patch: int, layers: int, width: int, heads: int) -> None:
        super().__init__()
        self.network = VisionTransformer(size, patch, layers, heads, width, 4 * width)

    def forward(self, x_bchw: torch.Tensor) -> torch.Tensor:
        logits_bv: torch.Tensor = self.network(x_bchw)
        return logits_bv

    def ours(self) -> dict[str, torch.Tensor]:
        theirs = self.network.state_dict()
        state = {"token": theirs["class_token"], "places": theirs["encoder.pos_embedding"]}
        for kind in ("weight", "bias"):
            state[f"into.{kind}"] = (
                theirs[f"conv_proj.{kind}"].flatten(1) if kind == "weight" else theirs["conv_proj.bias"]
            )
            state[f"norm.{kind}"] = theirs[f"encoder.ln.{kind}"]
            state[f"out.{kind}"] = theirs[f"heads.head.{kind}"]
            for index in range(len(self.network.encoder.layers)):
                for ours, name in OF_LAYER.items():
                    place = f"encoder.layers.encoder_layer_{index}.{name}{kind}"
                    state[f"layers.{index}.{ours}{kind}"] = theirs[place]
        return state
