"""Every task that trains: its seed decides its losses, they fall, and it runs with the flags that it was given."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import JpegImagePlugin

from bench.small import warmed
from cotenant.bench import Run, UnsupportedError
from cotenant.bench.loop import Loop
from cotenant.bench.observed import FlopCount, described_optimizer, watched_updates
from cotenant.findings.rules.work import FLOPS_LIKE
from cotenant.suite.pressure import RESOURCES
from tasks.loading import SMALL, TASKS, UNTRAINED, built, decodes, draw_pictures, in_fp16, losses, of, skip_without_lstm

pytestmark = pytest.mark.usefixtures("small_tables")

SSD, RCNN = "object_detection/single_stage_detector", "object_detection/mask_rcnn"
CART = "reinforcement/cart_pole"  # It learns at the end of an episode.
SPEAKS = ("speech_synthesis/tacotron2", "speech_synthesis/waveglow")
DLRM = "recommendation/dlrm"
TEXT = "natural_language_processing"
XL = f"{TEXT}/transformer_xl"
LONG_TIER = (
    SSD,
    RCNN,
    *SPEAKS,
    DLRM,
    "graph_learning/graphsage",
    XL,
    f"{TEXT}/llama",
    f"{TEXT}/lora",
    f"{TEXT}/moe",
    "reinforcement/ppo",
    "speech_recognition/whisper",
    "image_classification/vit",
    "image_generation/diffusion_transformer",
)
LSTMS = (f"{TEXT}/rnn_translator", SPEAKS[0])
TRAINED_FAST = [place for place in SMALL if place not in LONG_TIER]
FAST_IN_BF16 = (f"{TEXT}/gpt", LSTMS[0])
"""Autocast is the same for every task; in bf16 torch has its own path for recurrent layers."""
AUDITED_FAST = ("regression/polynome", "recommendation/neural_collaborative_filtering", CART, f"{TEXT}/gpt")


def of_each(places: Any, fast: Collection[str] = TRAINED_FAST, fast_in_bf16: Collection[str] = ()) -> list[Any]:
    """Return every place with fp32 and bf16, the slow ones marked."""
    return [
        pytest.param(place, name, marks=() if place in in_time else pytest.mark.slow)
        for place in places
        for name, in_time in (("fp32", fast), ("bf16", fast_in_bf16))
        if (place, name) != (CART, "bf16")
    ]


def test_every_task_that_trains_is_here() -> None:
    trains = {str(path.parents[1].relative_to(TASKS)) for path in TASKS.glob("*/*/pytorch/main.py")}
    nothing = {"image_loading/loader", *(f"ceilings/{what}" for what in ("product", "triad", "reading"))}
    nothing |= {f"pressure/{what}" for what in RESOURCES}
    assert trains - SMALL.keys() - UNTRAINED.keys() == nothing


SEEDED = (
    "generative_adversarial_networks/dcgan",
    "image_classification/convnets",
    f"{TEXT}/gpt",
    "question_answering/bert",
    "regression/polynome",
    CART,
    "super_resolution/subpixel_convolution",
    "time_sequence_prediction/lstm",
    "variational_auto_encoder/auto_encoding_variational_bayes",
)
"""Tasks that read files or play games have tests of their own for it."""


# ---- one seed gives one list of losses: bit for bit, with two threads, at any address in memory


def assert_the_seed_decides(place: str, times: int) -> None:
    def seeded(seed: int) -> list[float]:
        return losses(*built(of(place), **SMALL[place], seed=seed), {CART: 120, SSD: 2, RCNN: 2}.get(place, 4))

    first = seeded(5)
    assert len(set(first)) > 1
    elsewhere = []
    for number in range(1, times):
        elsewhere.append(torch.empty(1000 * number + 7))  # It moves the next run to other addresses.
        assert seeded(5) == first, number
    assert seeded(6) != first


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("place", SEEDED)
def test_the_seed_decides_the_losses(place: str) -> None:
    assert_the_seed_decides(place, 2)


@pytest.mark.slow
@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("place", SMALL)
def test_twenty_runs_are_the_same(place: str) -> None:
    assert_the_seed_decides(place, 20)


def test_a_run_asks_mkl_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MKL_CBWR")
    Run(of("regression/polynome")(cuda=False))
    assert os.environ["MKL_CBWR"] == "AUTO"


# ---- it learns, and follows its flags

FALLS: dict[str, tuple[dict[str, Any], int, float]] = {
    "fast_neural_style/neural_style": ({"batch_size": 2}, 5, 0.7),
    "generative_adversarial_networks/dcgan": ({"batch_size": 4}, 12, 0.8),
    "graph_learning/graphsage": ({"lr": 0.03}, 20, 0.5),
    "image_classification/convnets": ({"arch": "resnet18", "batch_size": 4}, 4, 0.5),
    "image_classification/scaling": ({"network": "resnet18", "batch_size": 4}, 4, 0.5),
    "image_generation/diffusion_transformer": ({"batch_size": 16, "lr": 0.01}, 40, 0.95),
    f"{TEXT}/gpt": ({"lr": 0.01}, 20, 0.8),
    f"{TEXT}/llama": ({"lr": 0.01}, 20, 0.8),
    f"{TEXT}/lora": ({"lr": 0.03}, 40, 0.99),
    f"{TEXT}/moe": ({"lr": 0.01}, 20, 0.8),
    "image_classification/vit": ({"batch_size": 4, "lr": 0.01}, 20, 0.5),
    "natural_language_processing/rnn_translator": ({"batch_size": 4, "dropout": 0.0, "lr": 0.01}, 10, 0.9),
    XL: ({"lr": 0.1}, 20, 0.6),  # a part of each norm, as LAMB has it
    "question_answering/bert": ({"lr": 1e-3}, 20, 0.9),
    DLRM: ({}, 20, 0.9),
    "recommendation/neural_collaborative_filtering": ({"batch_size": 128}, 45, 0.8),
    "regression/polynome": ({}, 300, 0.9),
    "speech_synthesis/tacotron2": ({"lr": 0.01}, 20, 0.7),
    "speech_synthesis/waveglow": ({"lr": 0.01}, 20, 9.0),  # Its loss is the logarithm of a density, and below 0.
    "speech_recognition/whisper": ({"lr": 0.01}, 20, 0.8),
    "super_resolution/subpixel_convolution": ({"batch_size": 3, "lr": 1e-3}, 20, 0.5),
    "time_sequence_prediction/lstm": ({"length": 40}, 8, 0.999),
    "variational_auto_encoder/auto_encoding_variational_bayes": ({}, 30, 0.9),
}


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize(("place", "precision"), of_each(FALLS, fast_in_bf16=[f"{TEXT}/gpt"]))
def test_the_loss_falls_on_a_fixed_batch(place: str, precision: str) -> None:
    parameters, steps, to = FALLS[place]
    if place in LSTMS:
        skip_without_lstm(precision)
    cls = of(place)
    benchmark, run = built(cls, **SMALL[place] | parameters | {"precision": precision})
    batch, step = next(iter(benchmark.batches(run))), run.precision.around(benchmark.step)
    values = [step(run, batch) for _ in range(steps)]
    assert all(loss.dim() == 0 and loss.requires_grad for loss in values)
    assert values[-1] < to * values[0]
    if place.startswith("image_classification/"):
        assert 5 < values[0] < 9  # About log(1000), for a thousand classes.
    if place.startswith(TEXT):
        assert abs(values[0] - math.log(200)) < 0.3  # The vocabulary has 200 words.


ITEMS = {
    f"{TEXT}/gpt": 2 * 12,
    "reinforcement/ppo": 32 * 4,
    **dict.fromkeys((f"{TEXT}/llama", f"{TEXT}/lora", f"{TEXT}/moe"), 2 * 12),
    XL: 2 * 6,
    SPEAKS[0]: 6 + 3,
    SPEAKS[1]: 2 * 512,
}
"""Items of one step of the tasks that do not count the rows of a batch."""


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize(("place", "precision"), of_each(SMALL, fast_in_bf16=FAST_IN_BF16))
def test_items_and_dtype_are_what_was_asked(place: str, precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if place in LSTMS:
        skip_without_lstm(precision)
    monkeypatch.setattr("cotenant.bench.loop.WARM_UP_STEPS", 1)
    loop, run = warmed(of(place)(cuda=False, **SMALL[place], precision=precision))
    # toy_lstm counts all sequences of a step as one item.
    assert loop.observe(2).items == 2 * ITEMS.get(place, SMALL[place].get("batch_size", 1))
    assert loop.auditor.dtype == precision
    told = loop.auditor.operations()
    assert told["flops_uncounted"] == []
    assert told["flops_closed"] is None or told["flops_per_step"] == pytest.approx(told["flops_closed"], rel=FLOPS_LIKE)
    assert [finding.rule for finding in run.findings if finding.severity != "info"] == []


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize(("place", "precision"), of_each(SMALL, AUDITED_FAST))
def test_an_audited_step_does_the_same_work_as_any_other(
    place: str, precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if place in LSTMS:
        skip_without_lstm(precision)
    # One loss in ten short steps is kept, and whether a step is short depends on the load of the machine.
    monkeypatch.setattr("cotenant.bench.loop.SHORT_STEP_NS", 0)
    benchmark = of(place)
    words = {"cuda": False, **SMALL[place], "precision": precision}
    watched = Loop(made := benchmark(**words), Run(made))
    losses = losses_of(watched, place, watched.audit)
    audit = watched.audited()["audit"]
    assert (audit["steps"], audit["after"], audit["differences"]) == (3, [1, 2, 3], [])
    unwatched = Loop(made := benchmark(**words), Run(made))
    assert losses == losses_of(unwatched, place, unwatched.rehearse)


def losses_of(loop: Loop, place: str, between: Callable[[], object]) -> list[float]:
    """Return the last loss of each of three observations, with such a step behind each."""
    loop.warm_up()
    losses = []
    for _ in range(3):
        losses += [loss.item() for loss in loop.observe(60 if place == CART else 2).losses[-1:]]
        between()
    return losses


# ---- in fp16 and in half its products are in fp16, and its optimizers step fp32 weights

IN_FP16 = (
    "generative_adversarial_networks/dcgan",
    f"{TEXT}/gpt",
    f"{TEXT}/word_language_model",
    "regression/polynome",
    CART,
)
"""Tasks of the fast tier: two optimizers, AdamW, SGD, SGD that is fused for the scaler, actions read on the host."""
SCALE = 64.0  # Small enough that no gradient overflows: a few steps have to do.


@pytest.fixture
def without_onednn() -> Iterator[None]:
    """Switch oneDNN off: on many processors it has no LSTM in fp16."""
    torch.backends.mkldnn.set_flags(_enabled=False)
    yield
    torch.backends.mkldnn.set_flags(_enabled=True)


@pytest.mark.usefixtures("without_onednn", "one_thread")
@pytest.mark.parametrize("name", ["fp16", pytest.param("half", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "place", [place if place in IN_FP16 else pytest.param(place, marks=pytest.mark.slow) for place in SMALL]
)
def test_a_task_trains_in_fp16(place: str, name: str) -> None:
    if (place, name) == (DLRM, "half"):
        with pytest.raises(UnsupportedError, match=r"Tables have no fp32 copies .* Use --precision fp16\."):
            in_fp16(of(place), name, SCALE, **SMALL[place])
        return
    benchmark, run = in_fp16(of(place), name, SCALE, **SMALL[place])
    batches, step = iter(benchmark.batches(run)), run.precision.around(benchmark.step)
    with watched_updates(run) as seen:
        batch = next(batches)
        with FlopCount() as count:
            first = step(run, batch)
        steps = [first, *(step(run, next(batches)) for _ in range({CART: 60, SSD: 0, RCNN: 0}.get(place, 2)))]
    assert count.dtype == "fp16"
    assert torch.stack([loss.detach().float() for loss in steps if loss is not None]).isfinite().all()
    assert seen
    for optimizer in seen:
        stated = described_optimizer(optimizer, run.precision)
        assert (stated["weights"], stated["stepped"]) == ("fp16" if name == "half" else "fp32", "fp32")
        # Optimizers that are not fused read the scaler's verdict on the host: cart reads its actions there anyway, and
        # no fused kernel steps single rows of tables, as DLRM's, or is LAMB.
        assert stated["fused"] == (place not in (CART, DLRM, XL))
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        assert all(parameter.isfinite().all() for parameter in parameters)
        assert {parameter.dtype for parameter in parameters} == {torch.float32}
    assert run.precision.scaler.get_scale() == SCALE


# ---- its input: files, decoded at full size as the original decodes them

READ: dict[str, tuple[dict[str, Any], list[int], tuple[float, ...]]] = {
    # Parameters, the shape of a batch, and bounds (low, least, largest, high) of its smallest and its largest value.
    "fast_neural_style/neural_style": ({"batch_size": 2}, [2, 3, 16, 16], (0, 0.45, 0.55, 1)),
    "generative_adversarial_networks/dcgan": ({"batch_size": 4}, [4, 3, 32, 32], (-1, -0.1, 0.1, 1)),
    "image_classification/convnets": ({}, [2, 3, 32, 32], (-2.2, -0.1, 0.1, 2.7)),
    "super_resolution/subpixel_convolution": ({"batch_size": 6}, [6, 1, 8, 8], (0, 0.45, 0.55, 1)),
}


@decodes
@pytest.mark.parametrize("workers", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("place", READ)
def test_pictures_are_read_and_counted(
    place: str, workers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drafts: list[Any] = []
    monkeypatch.setattr("cotenant.bench.loop.WARM_UP_STEPS", 1)
    monkeypatch.setattr(JpegImagePlugin.JpegImageFile, "draft", lambda *asked: drafts.append(asked))
    parameters, shape, (low, least, largest, high) = READ[place]
    parameters = SMALL[place] | parameters | {"data": draw_pictures(tmp_path / "set"), "workers": workers}
    loop, run = warmed(benchmark := of(place)(cuda=False, **parameters))
    seen = loop.observe(3)
    assert (seen.items, run.findings, drafts) == (3 * shape[0], [], [])
    assert all(loss.isfinite() for loss in seen.losses)
    batches = list(itertools.islice(benchmark.batches(run), 2))
    first, second = (batch if isinstance(batch, torch.Tensor) else batch[0] for batch in batches)
    assert (list(first.shape), first.dtype) == (shape, torch.float32)
    assert low <= first.min() < least < largest < first.max() <= high
    assert not torch.equal(first, second)


# ---- tenants differ in their seed alone, so that each counts as many items on its resident batch

COUNTED: dict[str, dict[str, Any]] = {
    "natural_language_processing/rnn_translator": {"batch_size": 5, "count": "tokens"},
    XL: {},
    "speech_synthesis/tacotron2": {"batch_size": 5, "frames": 40},
    "speech_synthesis/waveglow": {},
}
"""Tasks whose items are not the rows of the batch."""


@pytest.mark.parametrize("place", COUNTED)
def test_items_do_not_depend_on_the_seed(place: str) -> None:
    items, batches = [], []
    for seed in (100, 200):
        benchmark, run = built(of(place), **SMALL[place] | COUNTED[place], seed=seed)
        batches.append(next(iter(benchmark.batches(run))))
        items.append(benchmark.items(batches[-1]))
    assert items[0] == items[1] > 0
    first, second = (batch if hasattr(batch, "shape") else batch[0] for batch in batches)
    assert first.shape == second.shape
    assert not first.equal(second)
