"""Mel spectrograms from text with Tacotron 2 (Shen et al. 2018), teacher-forced, as on LJSpeech.

python main.py --batch-size 48 --number 10 [--frames 860 --characters 180 --encoder 512 --units 1024]
"""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from model import BANDS, PAD, SYMBOLS, Tacotron2
from torch.nn import functional as F

from cotenant.bench import Distributed, Run, flag, main
from cotenant.errors import CotenantError

CLIP_NORM = 1.0
LEAST_CHARACTERS, LEAST_FRAMES = 1 / 9, 10 / 43
"""The shortest text is of 20 of 180 characters, and the shortest speech of 200 of 860 frames."""

Batch = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, int]


class SpeechSynthesis(Distributed):
    """One step = one Adam update, every mel frame predicted from the text and the true frames before it."""

    item = "mel frame"
    replicable = False  # Texts' lengths stay on the host.
    same_shapes = True

    batch_size: int = 48
    number: int = 10
    characters: int = flag(180, help="characters of the longest text")
    frames: int = flag(860, help="mel frames of the longest speech")
    encoder: int = flag(512, help="units of encoder and postnet")
    units: int = flag(1024, help="units of the decoder's recurrent layers")
    lr: float = flag(1e-3, help="learning rate")
    decay: float = flag(1e-6, "--weight-decay", help="of Adam")

    def __init__(self, **parameters: Any) -> None:
        super().__init__(**parameters)
        if self.encoder % 2:
            raise CotenantError(f"--encoder {self.encoder} is odd: both directions of the encoder have a half each.")

    def build(self, run: Run) -> None:
        self.model = self.distribute(run, Tacotron2(self.encoder, self.units))
        self.optimizer = run.adam(self.model.parameters(), lr=self.lr, weight_decay=self.decay)

    def batches(self, run: Run) -> Iterator[Batch]:
        """Return characters, their lengths on the host, mel bands, a mask of the real frames, and their number."""
        rng = np.random.default_rng(run.seed)
        # Uniform lengths, the longest first; a longer text has longer speech. They are the same for every seed, so that
        # tenants with different seeds do equal work.
        share_b = 1 - (np.arange(self.batch_size) + 0.5) / self.batch_size
        length_b, frames_b = (
            (longest * (least + (1 - least) * share_b)).round().clip(1).astype(np.int64)
            for longest, least in ((self.characters, LEAST_CHARACTERS), (self.frames, LEAST_FRAMES))
        )
        character_bs = rng.integers(PAD + 1, SYMBOLS, (self.batch_size, length_b[0]))
        character_bs[np.arange(length_b[0]) >= length_b[:, None]] = PAD
        real_bf = np.arange(frames_b[0]) < frames_b[:, None]
        # Logarithms of amplitudes, about as speech has them; zeros after its end.
        mel_bmf = rng.normal(-5, 2, (self.batch_size, BANDS, frames_b[0])) * real_bf[:, None]
        character_bs, real_bf = (run.to_device(torch.from_numpy(one)) for one in (character_bs, real_bf))
        mel_bmf = run.to_device(torch.from_numpy(mel_bmf).float())
        return itertools.repeat((character_bs, torch.from_numpy(length_b), mel_bmf, real_bf, int(frames_b.sum())))

    def items(self, batch: Batch) -> int:
        return batch[-1]

    def step(self, run: Run, batch: Batch) -> torch.Tensor:
        character_bs, length_b, mel_bmf, real_bf, frames = batch
        coarse_bmf, refined_bmf, gate_bf = self.model(character_bs, length_b, mel_bmf)
        # A frame is the last one if the next is not real. Padding counts in no loss.
        last_bf = (~F.pad(real_bf, (0, 1))[:, 1:]).float()
        gate_loss = F.binary_cross_entropy_with_logits(gate_bf.float(), last_bf, real_bf, reduction="sum")
        squares_bmf = (coarse_bmf.float() - mel_bmf).square() + (refined_bmf.float() - mel_bmf).square()
        loss = (squares_bmf.mean(dim=1) * real_bf).sum() / frames + gate_loss / frames
        run.update(loss, self.optimizer, clip_norm=CLIP_NORM)
        return loss


if __name__ == "__main__":
    main(SpeechSynthesis)
