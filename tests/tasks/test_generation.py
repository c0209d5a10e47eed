"""Tasks that write and read text with a decoder: the model chooses every token, and every step is the same work."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from bench.small import warmed
from tasks.loading import UNTRAINED, built, of

DECODE, PREFILL = UNTRAINED
BOTH = [(place, precision) for place in UNTRAINED for precision in ("fp32", "bf16")]


pytestmark = pytest.mark.usefixtures("one_thread")


def test_decode_writes_what_the_model_finds_likeliest() -> None:
    benchmark, run = built(of(DECODE), **UNTRAINED[DECODE], seed=3)
    batch = next(iter(benchmark.batches(run)))
    prompt, context = benchmark.prompt, benchmark.context
    text = [batch.clone()]
    for _ in range(context - prompt + 1):
        assert benchmark.step(run, batch) is None
        text.append(batch.clone())
    # Only the caches hold the prompt: a second model with the same weights and caches predicts the expected tokens.
    again, run = built(of(DECODE), **UNTRAINED[DECODE], seed=3)
    torch.testing.assert_close(text[0], next(iter(again.batches(run))))
    caches, expected = again.text.caches, text[0]
    for at in range(prompt - 1, context):
        with torch.inference_mode():
            expected = again.model(expected, caches, torch.tensor([at])).argmax(-1)
        torch.testing.assert_close(text[at - prompt + 2], expected)
    assert len({tuple(tokens.flatten().tolist()) for tokens in text}) > 2
    # At the end of the context the next text begins behind the prompt.
    assert benchmark.text.at_1.tolist() == [prompt]


def test_prefill_gives_the_first_token_and_fills_the_cache() -> None:
    benchmark, run = built(of(PREFILL), **UNTRAINED[PREFILL])
    batch = next(iter(benchmark.batches(run)))
    benchmark.step(run, batch)
    with torch.no_grad():
        expected = benchmark.model(batch)[:, -1].argmax(-1)
    torch.testing.assert_close(benchmark.first_b1[:, 0], expected)
    assert all(cache.keys.abs().amin(dim=(1, 3)).gt(0).all() for cache in benchmark.caches)


@pytest.mark.parametrize(("place", "precision"), BOTH)
def test_every_step_is_the_same_work_and_is_watched(place: str, precision: Any) -> None:
    loop, run = warmed(benchmark := of(place)(cuda=False, **UNTRAINED[place], precision=precision))
    loop.audit()
    loop.audit()
    assert (loop.audited()["audit"]["steps"], loop.audited()["audit"]["differences"]) == (2, [])
    seen, rows = loop.observe(3), benchmark.batch_size
    assert (seen.items, seen.losses) == (3 * rows * (benchmark.context if place == PREFILL else 1), [])
    assert (loop.auditor.dtype, loop.updates, loop.promised) == (precision, 0, None)
    operations = loop.auditor.operations()
    assert operations["flops_per_step"] == operations["flops_closed"]
    assert [finding for finding in run.findings if finding.severity != "info"] == []
    loop.load_until(lambda: True)

    loop.load_until(lambda: True)
