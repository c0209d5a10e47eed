"""torchaudio's Tacotron 2 in the place of tasks/speech_synthesis/tacotron2's model."""

from __future__ import annotations

import torch
from torch import nn
from torchaudio.models import Tacotron2

PLACES = {
    "embedding": "encoder.embedding",
    "encoder.convolutions": "encoder.convolutions",
    "encoder.lstm": "encoder.both_ways",
    "decoder.prenet.layers.0": "prenet.first",
    "decoder.prenet.layers.1": "prenet.second",
    "decoder.attention_rnn": "attending.recurrent",
    "decoder.attention_layer.query_layer": "attending.query",
    "decoder.attention_layer.memory_layer": "attending.key",
    "decoder.attention_layer.v": "attending.score",
    "decoder.attention_layer.location_layer.location_conv": "attending.location",
    "decoder.attention_layer.location_layer.location_dense": "attending.spreading",
    "decoder.decoder_rnn": "decoder",
    "decoder.linear_projection": "frame",
    "decoder.gate_layer": "gate",
    "postnet.convolutions": "postnet",
}


class Model(nn.Module):
    """torchaudio's equal of the task's `Tacotron2`; `ours` returns its weights under the names in the task."""

    def __init__(self, encoder: int, units: int) -> None:
        super().__init__()
        self.network = Tacotron2(
            symbol_embedding_dim=encoder,
            encoder_embedding_dim=encoder,
            attention_rnn_dim=units,
            decoder_rnn_dim=units,
            postnet_embedding_dim=encoder,
        )

    def forward(
        self, character_bs: torch.Tensor, length_b: torch.Tensor, mel_bmf: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        # All lengths are the longest: torchaudio masks no frame, and the task's own loss leaves out the padding.
        frames_b = torch.full_like(length_b, mel_bmf.size(2))
        coarse_bmf, refined_bmf, gate_bf, _ = self.network(character_bs, length_b, mel_bmf, frames_b)
        return coarse_bmf, refined_bmf, gate_bf

    def ours(self) -> dict[str, torch.Tensor]:
        state = {}
        for name, value in self.network.state_dict().items():
            place = max((place for place in PLACES if name.startswith(f"{place}.")), key=len)
            of_layer = "_l0" if place == "decoder.decoder_rnn" else ""
            state[PLACES[place] + name.removeprefix(place) + of_layer] = value
        return state
