"""The tasks' benchmarks, loaded from their files, and pictures for tasks that read some."""

from __future__ import annotations

import functools
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from cotenant.bench import Benchmark, Run
from cotenant.bench.precision import Precision

ROOT = Path(__file__).parents[2]
TASKS = ROOT / "tasks"
PLACES = {
    "toy_reg": "regression/polynome",
    "toy_lstm": "time_sequence_prediction/lstm",
    "vae": "variational_auto_encoder/auto_encoding_variational_bayes",
    "loader": "image_loading/loader",
    "cart": "reinforcement/cart_pole",
}

TEXT = "natural_language_processing"
TRANSFORMER = {"batch_size": 2, "layers": 2, "width": 16, "heads": 2}
LANGUAGE_MODEL = TRANSFORMER | {"context": 12, "words": 200}
DECODER = LANGUAGE_MODEL | {"heads": 4, "kv_heads": 2, "inner": 24}
SMALL: dict[str, dict[str, Any]] = {
    "fast_neural_style/neural_style": {"batch_size": 1, "image_size": 16},
    "generative_adversarial_networks/dcgan": {"batch_size": 2, "image_size": 32, "ngf": 8, "ndf": 8},
    "graph_learning/graphsage": {"batch_size": 8, "graph_nodes": 200, "fan_out": (3, 2), "hidden": 8, "workers": 0},
    "image_classification/convnets": {"arch": "squeezenet1_1", "size": 32, "batch_size": 2, "workers": 0},
    "image_classification/scaling": {"network": "squeezenet1_1", "size": 32, "batch_size": 2},
    "image_classification/vit": TRANSFORMER | {"size": 32},
    "image_generation/diffusion_transformer": TRANSFORMER | {"side": 8, "patch": 4},
    f"{TEXT}/gpt": LANGUAGE_MODEL,
    f"{TEXT}/llama": DECODER,
    f"{TEXT}/lora": DECODER,
    f"{TEXT}/moe": LANGUAGE_MODEL | {"experts": 4, "active": 2, "inner": 24},
    f"{TEXT}/rnn_translator": {"batch_size": 2, "hidden": 16, "words": 200},
    f"{TEXT}/transformer_xl": TRANSFORMER | {"words": 200, "inner": 32, "target": 6, "memory": 4},
    f"{TEXT}/word_language_model": {"batch_size": 3, "words": 96, "emsize": 8, "nhid": 8, "bptt": 5},
    "object_detection/mask_rcnn": {"batch_size": 1, "height": 64, "width": 96, "regions": 8, "objects": 2},
    "object_detection/single_stage_detector": {"batch_size": 1},
    "question_answering/bert": TRANSFORMER | {"words": 200, "sequence": 24, "inner": 32},
    "recommendation/dlrm": {"batch_size": 16, "rows": 50},
    "recommendation/neural_collaborative_filtering": {"batch_size": 8},
    "regression/polynome": {"batch_size": 64},
    "reinforcement/atari": {"batch_size": 2, "num_steps": 2, "num_mini_batch": 1, "ppo_epoch": 1},
    "reinforcement/cart_pole": {},
    "reinforcement/ppo": {"batch_size": 32, "steps": 4, "units": 16},
    "speech_recognition/whisper": TRANSFORMER | {"mels": 8, "frames": 24, "tokens": 12, "words": 200},
    "speech_synthesis/tacotron2": {"batch_size": 2, "characters": 9, "frames": 8, "encoder": 16, "units": 16},
    "speech_synthesis/waveglow": {"batch_size": 2, "segment": 512, "bands": 4, "steps": 5, "layers": 2, "units": 8},
    "super_resolution/subpixel_convolution": {"batch_size": 2, "crop": 16},
    "time_sequence_prediction/lstm": {"waves": 8, "length": 20},
    "variational_auto_encoder/auto_encoding_variational_bayes": {"batch_size": 16},
}
"""Every task that trains, with parameters that make it small."""
UNTRAINED = {"text_generation/decode": DECODER, "text_generation/prefill": DECODER}
"""Every task that uses a network without training it, with parameters that make it small."""


@functools.cache
def main_of(place: str) -> Any:
    """Return the module of a place's main.py, which can import the modules in its folder, as a script can.

    They become its attributes and leave `sys.modules`, so that another task's `model` or `boxes` is not taken for them.
    """
    folder = TASKS / place / "pytorch"
    siblings = [path.stem for path in folder.glob("*.py")]
    before = {name: sys.modules.pop(name) for name in siblings if name in sys.modules}
    spec = importlib.util.spec_from_file_location(f"main_of_{place.replace('/', '_')}", folder / "main.py")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(folder))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(folder))
        for name in siblings:
            if name in sys.modules:
                vars(module).setdefault(name, sys.modules.pop(name))
        sys.modules.update(before)
    return module


# torchvision announces that its decoders will move to another package, after every version that we run on.
decodes = pytest.mark.filterwarnings("ignore:The image decoding:DeprecationWarning")


def benchmark_of(name: str) -> type[Benchmark]:
    """Return the one benchmark that a task's main.py defines."""
    return of(PLACES[name])


def of(place: str) -> type[Benchmark]:
    """Return the one benchmark that a place's main.py defines."""
    module = main_of(place)
    (found,) = (
        one
        for one in vars(module).values()
        if isinstance(one, type) and issubclass(one, Benchmark) and one.__module__ == module.__name__
    )
    return found


def built(cls: type[Benchmark], **parameters: Any) -> tuple[Any, Run]:
    """Return a benchmark on the CPU, built, and its run."""
    benchmark = cls(cuda=False, **parameters)
    run = Run(benchmark)
    benchmark.build(run)
    return benchmark, run


def in_fp16(cls: type[Benchmark], name: str, scale: float = 2.0**16, **parameters: Any) -> tuple[Any, Run]:
    """Return a benchmark built on the CPU in `fp16` or `half`, which a measured run refuses there, and its run."""
    benchmark = cls(cuda=False, **parameters)
    run = Run(benchmark)
    autocast, outside = torch.autocast("cpu", torch.float16), torch.autocast("cpu", enabled=False)
    run.precision = Precision(name, autocast, outside, torch.amp.GradScaler("cpu", init_scale=scale))
    run.update = run.precision.update
    benchmark.build(run)
    return benchmark, run


def losses(benchmark: Any, run: Run, steps: int) -> list[float]:
    """Return the losses of the next `steps` steps; not each step has one."""
    batches, step = iter(benchmark.batches(run)), run.precision.around(benchmark.step)
    values = [step(run, next(batches)) for _ in range(steps)]
    return [loss.item() for loss in values if loss is not None]


def started(folder: Path, script: Path, *words: str, **variables: str) -> tuple[list[str], str]:
    """Return the DEVICE_TOTAL and the words that a script gives `python`, and its stderr; a stand-in prints them."""
    python = folder / "python"
    python.write_text('#!/bin/sh\nprintf "%s\\n" "$DEVICE_TOTAL" "$@"\n')
    python.chmod(0o755)
    ended = subprocess.run(
        [script, *words],
        env={"PATH": f"{folder}:{os.environ['PATH']}"} | variables,
        capture_output=True,
        text=True,
        check=True,
    )
    return ended.stdout.splitlines(), ended.stderr


def draw_pictures(folder: Path, classes: int = 2, each: int = 4) -> Path:
    """Make JPEG files of several sizes in one folder per class."""
    random = np.random.default_rng(0)
    for label in range(classes):
        (folder / f"class{label}").mkdir(parents=True)
        for number in range(each):
            pixels = random.integers(0, 256, (40 + number, 60 - number, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / f"class{label}" / f"{number}.jpg")
    return folder


def skip_without_lstm(precision: str) -> None:
    """Skip the test where this processor has no LSTM in this precision: oneDNN's in bf16 needs AVX-512."""
    if precision == "bf16" and not _lstm_in_bf16():
        pytest.skip("this processor has no LSTM in bf16")


@functools.cache
def _lstm_in_bf16() -> bool:
    try:
        with torch.autocast("cpu", torch.bfloat16):
            torch.nn.LSTM(8, 8)(torch.randn(2, 1, 8))
    except RuntimeError:
        return False
    return True
