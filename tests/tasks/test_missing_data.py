"""Every task with a --data that does not exist, is no such set, or has a broken image."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cotenant.bench import MissingDataError, Run
from cotenant.bench.outcome import outcome_of
from cotenant.datasets.sets.mnist import idx_header
from tasks.loading import decodes, draw_pictures, of

OF_CLASSES = {
    "image_loading/loader": {"size": 16, "decoder": "torchvision"},
    "image_classification/convnets": {"size": 16},
    "generative_adversarial_networks/dcgan": {"image_size": 32},
    "fast_neural_style/neural_style": {"image_size": 16},
}
VAE, SSD, RECOM, WLM, TRANSLATOR = (
    "variational_auto_encoder/auto_encoding_variational_bayes",
    "object_detection/single_stage_detector",
    "recommendation/neural_collaborative_filtering",
    "natural_language_processing/word_language_model",
    "natural_language_processing/rnn_translator",
)
IMAGES = OF_CLASSES | {"super_resolution/subpixel_convolution": {"crop": 16}, SSD: {}}
FILES = {
    VAE: ["train-images-idx3-ubyte"],
    SSD: ["annotations/instances_train2017.json"],
    RECOM: ["ratings.csv"],
    WLM: ["wiki.train.tokens"],
    "natural_language_processing/transformer_xl": ["wiki.train.tokens"],
    TRANSLATOR: ["vocab.bpe.32000", "train.tok.clean.bpe.32000.en", "train.tok.clean.bpe.32000.de"],
}


def batches(place: str, folder: Path, **parameters: Any) -> Any:
    """Return a task's batches; its model is built for the normalising loader alone, which needs it."""
    benchmark = of(place)(cuda=False, data=folder, batch_size=2, **parameters)
    run = Run(benchmark)
    if place == "image_loading/loader":
        benchmark.build(run)
    return iter(benchmark.batches(run))


def told(error: MissingDataError, place: str) -> str:
    """Return the message of a record of this error, after a check that it says how to make the data."""
    outcome, message, status = outcome_of(error, 2)
    assert (outcome, status) == ("missing_data", 1)
    assert f"./download_datasets.sh {Path(place).name}, or give its place with --data." in message
    assert "\n" not in message
    return message


def missing(folder: Path) -> None:
    """Leave out the folder."""


def a_file(folder: Path) -> None:
    folder.write_text("no folder")


def an_empty_class(folder: Path) -> None:
    (draw_pictures(folder, classes=1) / "class1").mkdir()


@pytest.mark.parametrize(
    ("place", "fault", "sentence"),
    [(place, fault, "{}") for place in IMAGES | FILES for fault in (missing, Path.mkdir, a_file)]
    + [(place, an_empty_class, "{}/class1 holds no JPEG or PNG files.") for place in OF_CLASSES],
)
def test_a_wrong_folder_is_named(place: str, fault: Callable[[Path], None], sentence: str, tmp_path: Path) -> None:
    folder = tmp_path / "set"
    fault(folder)
    with pytest.raises(MissingDataError) as raised:
        next(batches(place, folder, workers=0))
    assert sentence.format(folder) in told(raised.value, place)


def annotated(*names: str, categories: int = 1, category: int = 1) -> bytes:
    """Return annotations in COCO's format with one object in each of these pictures."""
    numbers = range(len(names))
    images = [{"id": n, "file_name": names[n], "width": 60, "height": 40} for n in numbers]
    things = [{"image_id": n, "category_id": category, "bbox": [1, 1, 9, 9], "iscrowd": 0} for n in numbers]
    kinds = [{"id": 1 + n} for n in range(categories)]
    return json.dumps({"images": images, "annotations": things, "categories": kinds}).encode()


@decodes
@pytest.mark.parametrize("workers", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("place", IMAGES)
def test_a_broken_image_among_whole_ones_is_named(place: str, workers: int, tmp_path: Path) -> None:
    draw_pictures(tmp_path / "set" / "train2017")
    folder = tmp_path / "set"
    if place.startswith("object_detection"):
        names = sorted(str(path.relative_to(folder / "train2017")) for path in folder.rglob("*.jpg"))
        (folder / "annotations").mkdir()
        (folder / FILES[SSD][0]).write_bytes(annotated(*names))
    else:
        folder = folder / "train2017"
    whole = batches(place, folder, workers=workers, **IMAGES[place])
    next(whole)
    (broken,) = folder.rglob("class1/2.jpg")
    broken.write_bytes(broken.read_bytes()[:200])
    seen = batches(place, folder, workers=workers, **IMAGES[place])
    with pytest.raises(MissingDataError) as raised:
        for _ in itertools.islice(seen, 5):
            pass
    assert told(raised.value, place).startswith(f"{broken} cannot be decoded: ")


DIGITS = idx_header((2, 28, 28)) + bytes(2 * 28 * 28)
HEADER = b"userId,movieId,rating,timestamp\n"
DAMAGES = {
    "cut off": (VAE, DIGITS[:-1], "is not a complete idx file"),
    "no idx file": (VAE, b"foreign", "is not a complete idx file"),
    "of another shape": (VAE, idx_header((2, 56, 14)) + bytes(2 * 784), "of the shape (2, 56, 14)"),
    "broken JSON": (SSD, b'{"images": [', "truncated"),
    "no UTF-8": (SSD, annotated("1.jpg").replace(b"1.jpg", b"\xff.jpg"), "cannot be read: "),
    "a category that is not listed": (SSD, annotated("1.jpg", category=7), "category, 7, is none of its own"),
    "too many categories": (SSD, annotated("1.jpg", categories=81), "81 categories"),
    "too few columns": (RECOM, HEADER + b"1,2,3.5\n", "no list of ratings"),
    "uneven columns": (RECOM, HEADER + b"1,2\n1,2,3,4,5,6\n", "no list of ratings"),
    "no numbers": (RECOM, HEADER + "1,ä,3.5,4\n".encode("latin-1"), "no list of ratings"),
    "nothing": (WLM, b"", "is empty"),
}


def put(folder: Path, place: str, content: bytes | None) -> None:
    """Write `content` to every file that a task reads; with None make a folder in place of the last one."""
    (folder / "train2017").mkdir()
    for name in FILES[place]:
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        if content is None and name == FILES[place][-1]:
            path.mkdir()
        else:
            path.write_bytes(b"a b\n" if content is None else content)


@pytest.mark.parametrize("place", FILES)
def test_a_file_that_cannot_be_read_is_named(place: str, tmp_path: Path) -> None:
    """Each missing file is named, and the last one if it is a folder or forbidden (root may read every file)."""
    cases = [(name, "There is no {}. Make the data") for name in FILES[place]]
    cases.append((FILES[place][-1], "{} cannot be read: Is a directory. Move its set away"))
    cases += [(FILES[place][-1], "{} cannot be read: Permission denied.")] if os.geteuid() else []
    for number, (name, sentence) in enumerate(cases):
        (folder := tmp_path / str(number)).mkdir()
        put(folder, place, None if "directory" in sentence else b"a b\n")
        if "There is no" in sentence:
            (folder / name).unlink()
        elif "denied" in sentence:
            (folder / name).chmod(0)
        with pytest.raises(MissingDataError) as raised:
            next(batches(place, folder))
        assert told(raised.value, place).startswith(sentence.format(folder / name))


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_named(damage: str, tmp_path: Path) -> None:
    place, content, sentence = DAMAGES[damage]
    put(tmp_path, place, content)
    with pytest.raises(MissingDataError) as raised:
        next(batches(place, tmp_path))
    message = told(raised.value, place)
    assert f"{tmp_path}/{FILES[place][0]} " in message
    assert sentence in message


def test_memory_that_ran_out_says_nothing_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "wiki.train.tokens").write_text("a b")
    run = Run(of(WLM)(cuda=False, data=tmp_path))

    def reader(path: Path) -> None:
        raise OSError(12, "can't allocate memory")

    with pytest.raises(OSError, match="memory"):
        run.read(reader, "wiki.train.tokens")
