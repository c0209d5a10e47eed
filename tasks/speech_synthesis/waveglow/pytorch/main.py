"""Speech from its mel spectrogram with WaveGlow (Prenger et al. 2019), as on LJSpeech: segments of 8000 samples.

python main.py --batch-size 6 --segment 8000 [--steps 12 --layers 8 --units 512]
"""

from collections.abc import Iterator
from typing import Any

import torch
from model import EARLY_EVERY, GROUP, HOP, WaveGlow

from cotenant.bench import Distributed, Run, UnsupportedError, flag, main
from cotenant.errors import CotenantError

CLIP_NORM = 65_504.0
"""The largest fp16: no gradient's norm reaches it, but every step computes the norm."""
MOST_STEPS = 4 * EARLY_EVERY
"""After so many steps no channels are left."""

Batch = tuple[torch.Tensor, torch.Tensor]


class SpeechFromMel(Distributed):
    """One step = one Adam update that makes segments of speech more probable, given their spectrograms."""

    item = "audio sample"
    replicable = False  # Its determinant is one number for all rows.
    same_shapes = True

    batch_size: int = 6
    segment: int = flag(8000, help="samples of one segment")
    bands: int = flag(80, help="mel bands of a spectrogram")
    steps: int = flag(12, help="steps of the flow")
    layers: int = flag(8, help="dilated layers of each step")
    units: int = flag(512, help="units of each layer")
    lr: float = flag(1e-4, help="learning rate")

    def __init__(self, **parameters: Any) -> None:
        super().__init__(**parameters)
        if self.parallel == "fsdp":
            raise UnsupportedError("Shards do not hold the weights that WaveGlow's norms make.", "Use --parallel ddp.")
        if self.segment % GROUP:
            raise CotenantError(f"--segment {self.segment} is no multiple of {GROUP}.")
        if self.steps > MOST_STEPS:
            raise CotenantError(f"--steps {self.steps} is more than {MOST_STEPS}.")

    def build(self, run: Run) -> None:
        self.model = self.distribute(run, WaveGlow(self.bands, self.steps, self.layers, self.units))
        self.optimizer = run.adam(self.model.parameters(), lr=self.lr)

    def batches(self, run: Run) -> Iterator[Batch]:
        """Return waves (b, s) between -1 and 1, and logarithms of their mel bands (b, m, f)."""
        wave_bs = (0.1 * torch.randn(self.batch_size, self.segment)).clamp(-1, 1)
        mel_bmf = 2 * torch.randn(self.batch_size, self.bands, self.segment // HOP + 1) - 5
        return run.resident(wave_bs, mel_bmf)

    def items(self, batch: Batch) -> int:
        return batch[0].numel()

    def step(self, run: Run, batch: Batch) -> torch.Tensor:
        noise_bct, determinant = self.model(*batch)
        # The negative log likelihood as white noise of variance 1, without its constant; the mean over samples.
        loss = (noise_bct.float().square().sum() / 2 - determinant) / noise_bct.numel()
        run.update(loss, self.optimizer, clip_norm=CLIP_NORM)
        return loss


if __name__ == "__main__":
    main(SpeechFromMel)
