"""The tasks' benchmarks, loaded from their files, and the pictures one of them reads."""

from __future__ import annotations

import functools
import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from cotenant.bench import Benchmark

ROOT = Path(__file__).parents[2]
TASKS = ROOT / "tasks"
PLACES = {
    "toy_reg": "regression/polynome",
    "toy_lstm": "time_sequence_prediction/lstm",
    "vae": "variational_auto_encoder/auto_encoding_variational_bayes",
    "loader": "image_loading/loader",
    "cart": "reinforcement/cart_pole",
}


@functools.cache
def task(name: str) -> Any:
    """Return the module of a task's main.py."""
    spec = importlib.util.spec_from_file_location(f"main_of_{name}", TASKS / PLACES[name] / "pytorch" / "main.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def benchmark_of(name: str) -> type[Benchmark]:
    """Return the one benchmark that a task's main.py defines."""
    module = task(name)
    (found,) = (
        one
        for one in vars(module).values()
        if isinstance(one, type) and issubclass(one, Benchmark) and one.__module__ == module.__name__
    )
    return found


def draw_pictures(folder: Path, classes: int = 2, each: int = 4) -> Path:
    """Make JPEG files of several sizes in one folder per class."""
    random = np.random.default_rng(0)
    for label in range(classes):
        (folder / f"class{label}").mkdir(parents=True)
        for number in range(each):
            pixels = random.integers(0, 256, (40 + number, 60 - number, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / f"class{label}" / f"{number}.jpg")
    return folder
