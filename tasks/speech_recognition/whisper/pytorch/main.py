"""Whisper (Radford et al. 2023) learns to transcribe speech: clips of 30 seconds, teacher forcing.

python main.py --batch-size 16 --precision bf16
"""

from collections.abc import Iterator

import torch
from model import Whisper
from torch.nn import functional as F

from cotenant.bench import Distributed, Run, flag, main
from cotenant.errors import CotenantError
from cotenant.layers.data import zipf
from cotenant.layers.layers import decayed

CLIP_NORM = 1.0


class SpeechRecognition(Distributed):
    """One step = one AdamW update on a batch of clips and the tokens spoken in them."""

    item = "clip"
    same_shapes = True

    batch_size: int = flag(16, "--batch-size", "-b", help="clips in one batch")
    mels: int = flag(80, help="mel bands of a frame")
    frames: int = flag(3000, help="frames of a clip, a hundred a second")
    tokens: int = flag(448, help="tokens of a clip, none of them padding")
    words: int = flag(51_865, help="tokens that there are")
    layers: int = flag(4, help="layers of the encoder and of the decoder")
    width: int = flag(384, help="units between layers")
    heads: int = flag(6, help="heads of each layer's attention")
    lr: float = flag(1e-3, help="learning rate")

    def build(self, run: Run) -> None:
        if self.frames % 2 or self.width % 2:
            raise CotenantError(f"--frames {self.frames} and --width {self.width} are halved.", "Give even numbers.")
        sizes = self.mels, self.frames, self.words, self.tokens, self.layers, self.width, self.heads
        self.model = self.distribute(run, Whisper(*sizes))
        self.optimizer = run.adamw(decayed(self.model, 0.1), lr=self.lr, betas=(0.9, 0.98), eps=1e-6)

    def batches(self, run: Run) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Return mels (b, mels, frames) and (b, tokens + 1) tokens: each but the first is predicted."""
        mels = torch.randn(self.batch_size, self.mels, self.frames)
        return run.resident(mels, zipf(self.words, self.batch_size, self.tokens + 1))

    def step(self, run: Run, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        mel_bmf, tokens_bl = batch
        logits_blv = self.model(mel_bmf, tokens_bl[:, :-1])
        loss = F.cross_entropy(logits_blv.flatten(0, 1), tokens_bl[:, 1:].flatten())
        run.update(loss, self.optimizer, clip_norm=CLIP_NORM)
        return loss

    def flops(self, batch: tuple[torch.Tensor, torch.Tensor]) -> float:
        w, heard, said = self.width, self.frames // 2, self.tokens
        # Forward, and backward by weights and by input; the first layer needs no gradient of its input.
        convolved = 4 * 3 * self.mels * w * self.frames + 6 * 3 * w**2 * heard
        encoded = self.layers * (6 * 12 * w**2 + 12 * w * heard) * heard
        crossed = self.layers * (6 * 2 * w**2 * (said + heard) + 12 * w * said * heard)
        decoded = self.layers * (6 * 12 * w**2 + 12 * w * said) * said + 6 * self.words * w * said
        return self.batch_size * (convolved + encoded + crossed + decoded)


if __name__ == "__main__":
    main(SpeechRecognition)
