from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn.functional import binary_cross_entropy_with_logits, conv1d, mse_loss, pad

from cotenant.bench import Run, UnsupportedError
from tasks.loading import SMALL, built, main_of, of

TACOTRON, WAVEGLOW = "speech_synthesis/tacotron2", "speech_synthesis/waveglow"
WHISPER = "speech_recognition/whisper"


@pytest.fixture(scope="module")
def tacotron() -> Any:
    return main_of(TACOTRON)


@pytest.fixture(scope="module")
def waveglow() -> Any:
    return main_of(WAVEGLOW)


def test_weight_decay_and_gradient_clipping_follow_the_vendors(tacotron: Any, waveglow: Any) -> None:
    spoken, _ = built(tacotron.SpeechSynthesis, **SMALL[TACOTRON])
    assert spoken.optimizer.defaults["weight_decay"] == 1e-6
    sung, run = built(waveglow.SpeechFromMel, **SMALL[WAVEGLOW])
    clipped: list[float | None] = []
    run.update = lambda loss, optimizer, clip_norm=None: clipped.append(clip_norm)
    sung.step(run, next(sung.batches(run)))
    assert clipped == [65_504.0]
    with pytest.raises(UnsupportedError, match="Use --parallel ddp"):
        waveglow.SpeechFromMel(parallel="fsdp")


# ---- Tacotron 2


def test_texts_and_speeches_are_as_long_as_they_are_published(tacotron: Any) -> None:
    benchmark = tacotron.SpeechSynthesis(cuda=False, batch_size=100)
    batch = next(benchmark.batches(Run(benchmark)))
    characters, lengths, mel, real, _ = batch
    assert lengths.tolist() == (characters != 0).sum(1).tolist() == sorted(lengths.tolist(), reverse=True)
    frames = real.sum(1)
    assert benchmark.items(batch) == frames.sum()
    assert (20 <= lengths.min() < 30, 170 < lengths.max() <= 180) == (True, True)
    assert (200 <= frames.min() < 230, 830 < frames.max() <= 860) == (True, True)
    assert (lengths.float().mean().round(), frames.float().mean().round()) == (100, 530)
    other = tacotron.SpeechSynthesis(cuda=False, batch_size=100, seed=1)
    other_batch = next(other.batches(Run(other)))
    assert torch.equal(other_batch[1], lengths)
    assert other.items(other_batch) == frames.sum()
    assert not torch.equal(other_batch[0], characters)
    assert mel.shape == (100, 80, frames.max())
    assert torch.equal((mel != 0).any(dim=1), real)
    assert -5.1 < mel[mel != 0].mean() < -4.9
    assert characters.max() == 147


def test_attention_follows_the_published_formula(tacotron: Any) -> None:
    module = tacotron.Tacotron2(8, 6).eval().attending
    prenet, memory = torch.randn(3, 2, 256), torch.randn(2, 5, 8)
    padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    hidden_f, context_f = module(prenet, memory, padding)
    for b, characters in enumerate((5, 3)):
        state, context, weights = (torch.zeros(1, 6), torch.zeros(1, 6)), torch.zeros(1, 8), torch.zeros(1, 2, 5)
        for f in range(3):
            state = module.recurrent(torch.cat([prenet[f, b : b + 1], context], 1), state)
            location = conv1d(weights, module.location.weight, padding=15)[0].T
            spoken = module.query(state[0]) + module.key(memory[b]) + module.spreading(location)
            weight = module.score(spoken.tanh())[:characters, 0].softmax(0)
            context = weight[None] @ memory[b, :characters]
            weight = pad(weight, (0, 5 - characters))
            weights = torch.stack([weight, weights[0, 1] + weight])[None]
            torch.testing.assert_close(hidden_f[f, b], state[0][0])
            torch.testing.assert_close(context_f[f, b], context[0])


def test_a_frame_is_predicted_from_those_before_it(tacotron: Any) -> None:
    model = tacotron.Tacotron2(8, 6).eval()
    characters, mel = torch.randint(1, 148, (1, 4)), torch.randn(1, 80, 7)
    before, _, gate = model(characters, torch.tensor([4]), mel)
    mel[..., 4] += 1
    after, refined, _ = model(characters, torch.tensor([4]), mel)
    torch.testing.assert_close(before[..., :5], after[..., :5])
    assert not torch.allclose(before[..., 5:], after[..., 5:])
    assert (before.shape, gate.shape, refined.shape) == ((1, 80, 7), (1, 7), (1, 80, 7))


def test_padding_counts_in_no_loss(tacotron: Any) -> None:
    benchmark, run = built(tacotron.SpeechSynthesis, **SMALL[TACOTRON])
    run.update = lambda loss, optimizer, clip_norm: None
    characters, lengths, mel, real, frames = next(benchmark.batches(run))
    outputs = torch.randn_like(mel), torch.randn_like(mel), torch.randn_like(mel[:, 0])
    benchmark.model = lambda *batch: outputs
    loss = benchmark.step(run, (characters, lengths, mel, real, frames))
    expected = 0.0
    for b, length in enumerate(real.sum(1).tolist()):
        last = torch.arange(length) == length - 1
        expected += binary_cross_entropy_with_logits(outputs[2][b, :length], last.float(), reduction="sum")
        for output in outputs[:2]:
            expected += mse_loss(output[b, :, :length], mel[b, :, :length], reduction="sum") / 80
    torch.testing.assert_close(loss, expected / frames)


# ---- WaveGlow


def small(waveglow: Any) -> Any:
    """Return a flow of five steps that already scales and shifts: the published one begins with neither."""
    model = waveglow.WaveGlow(4, 5, 2, 8)
    for coupling in model.coupling:
        torch.nn.init.normal_(coupling.last.weight, std=0.2)
    for mixing in model.mixing:
        torch.nn.init.normal_(mixing.weight)
    return model.double()


def test_the_determinant_is_that_of_the_whole_map(waveglow: Any) -> None:
    model = small(waveglow)
    wave, mel = torch.randn(1, 24).double(), torch.randn(1, 4, 1).double()
    noise, determinant = model(wave, mel)
    assert noise.shape == (1, 8, 3)
    jacobian = torch.autograd.functional.jacobian(lambda wave: model(wave, mel)[0].flatten(), wave).flatten(1)
    torch.testing.assert_close(
        determinant, torch.linalg.slogdet(jacobian).logabsdet, check_dtype=False, rtol=1e-5, atol=1e-5
    )
    assert abs(determinant) > 0.1


@pytest.mark.slow
def test_determinants_are_fp32_and_begin_at_0(waveglow: Any) -> None:
    with torch.device("meta"):
        model = waveglow.WaveGlow(4, 13, 1, 8)
    assert [mixing.weight.size(0) for mixing in model.mixing] == [8] * 4 + [6] * 4 + [4] * 4 + [2]
    model = waveglow.WaveGlow(4, 2, 1, 8)
    with torch.autocast("cpu", torch.bfloat16):
        noise, determinant = model(torch.rand(2, 64) - 0.5, torch.randn(2, 4, 1))
    assert (noise.shape, determinant.dtype) == ((2, 8, 8), torch.float32)
    assert abs(determinant) < 1e-2
    # A rotation keeps lengths, and no layer scales yet.
    assert model.half().mixing_determinant().dtype == torch.float32


def test_half_of_the_channels_can_be_recovered(waveglow: Any) -> None:
    coupling = small(waveglow).coupling[0]
    wave, condition = torch.randn(2, 8, 6).double(), torch.randn(2, 32, 6).double()
    changed, scale = coupling(wave, condition)
    assert torch.equal(changed[:, :4], wave[:, :4])
    _, same_scale = coupling(changed, condition)
    assert torch.equal(scale, same_scale)
    silent = torch.cat([wave[:, :4], torch.zeros_like(wave[:, 4:])], dim=1)
    moved, _ = coupling(silent, condition)
    torch.testing.assert_close((changed - moved)[:, 4:] / scale.exp(), wave[:, 4:])


def test_the_loss_is_how_improbable_the_noise_is(waveglow: Any) -> None:
    benchmark, run = built(waveglow.SpeechFromMel, **SMALL[WAVEGLOW])
    run.update = lambda loss, optimizer, clip_norm: None
    batch = next(benchmark.batches(run))
    assert ([tuple(part.shape) for part in batch], benchmark.items(batch)) == ([(2, 512), (2, 4, 3)], 1024)
    benchmark.model = lambda *batch: (torch.full((2, 8, 64), 3.0), torch.tensor(512.0))
    assert benchmark.step(run, batch) == 4.5 - 0.5


# ---- Whisper


def test_no_bias_of_whisper_decays() -> None:
    benchmark, _ = built(of(WHISPER), **SMALL[WHISPER])
    decays, _ = benchmark.optimizer.param_groups
    assert decays["weight_decay"] == 0.1
    decaying = {id(weight) for weight in decays["params"]}
    biases = {name: id(weight) for name, weight in benchmark.model.named_parameters() if "bias" in name}
    assert "encoder.0.attention.qkv.query_bias" in biases
    assert decaying.isdisjoint(biases.values())
