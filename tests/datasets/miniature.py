"""The archives of every real set in miniature: names and layout are the published ones, and files are few and tiny.

Each is made once, as archives hold the time at which they were made.
"""

import gzip
import hashlib
import io
import json
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
from PIL import Image
from scipy.io import savemat

from cotenant.datasets.dataset import Archive, Dataset
from cotenant.datasets.sets import find_dataset
from cotenant.datasets.sets.mnist import idx_header

WORDS = ("the", "cat", "sat", "on", "a", "mat", "and", "it", "was", "big")


def jpeg(number: int = 0) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (48 + number, 32), (number, 99, 7)).save(buffer, "JPEG")
    return buffer.getvalue()


def tar(members: Mapping[str, bytes], mode: str = "w") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as packed:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            packed.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def zipped(members: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as packed:
        for name, content in members.items():
            packed.writestr(name, content)
    return buffer.getvalue()


@cache
def mnist() -> dict[str, bytes]:
    found = {}
    for split, count in (("train", 6), ("t10k", 4)):
        images = np.arange(count * 784, dtype=np.uint8).reshape(count, 28, 28)
        labels = np.arange(count, dtype=np.uint8)
        for name, array in (("images-idx3", images), ("labels-idx1", labels)):
            content = idx_header(array.shape) + array.tobytes()
            found[f"{split}-{name}-ubyte.gz"] = gzip.compress(content)
    return found


@cache
def bsds500() -> dict[str, bytes]:
    pictures = {
        f"BSR/BSDS500/data/images/{split}/{i}.jpg": jpeg(i) for split in ("train", "val", "test") for i in (1, 2)
    }
    others = {"BSR/BSDS500/data/images/train/Thumbs.db": b"", "BSR/bench/Makefile": b"all:"}
    return {"BSR_bsds500.tgz": tar(pictures | others, "w:gz")}


@cache
def coco() -> dict[str, bytes]:
    found, annotations = {}, {"annotations/captions_val2017.json": b"{}"}
    for split, first in (("train2017", 10), ("val2017", 20)):
        pictures = {f"{i:012d}.jpg": jpeg(i) for i in (first, first + 1)}
        found[f"{split}.zip"] = zipped({f"{split}/": b""} | {f"{split}/{name}": one for name, one in pictures.items()})
        objects: dict[str, Any] = {
            "images": [{"id": int(name[:12]), "file_name": name, "width": 50, "height": 32} for name in pictures],
            "annotations": [
                {"id": i, "image_id": int(name[:12]), "category_id": 3, "bbox": [1, 2, 9, 9], "iscrowd": 0}
                for i, name in enumerate(pictures)
            ],
            "categories": [{"id": 3, "name": "car"}],
        }
        annotations[f"annotations/instances_{split}.json"] = json.dumps(objects).encode()
    return found | {"annotations_trainval2017.zip": zipped(annotations)}


@cache
def imagenet() -> dict[str, bytes]:
    classes = ("n01440764", "n01443537")
    inner = {f"{one}.tar": tar({f"{one}_{i}.JPEG": jpeg(i) for i in (1, 2, 3)}) for one in classes}
    val = {f"ILSVRC2012_val_{i:08d}.JPEG": jpeg(i) for i in (1, 2, 3)}
    # As in the real file, ids do not follow the order of names, and the list also holds groups of classes.
    kinds = [("ILSVRC2012_ID", "f8"), ("WNID", "O"), ("num_children", "f8")]
    synsets = np.array([(1, classes[1], 0), (2, classes[0], 0), (3, "n00000003", 2)], kinds)
    meta = io.BytesIO()
    savemat(meta, {"synsets": synsets})
    kit = {
        "ILSVRC2012_devkit_t12/data/meta.mat": meta.getvalue(),
        "ILSVRC2012_devkit_t12/data/ILSVRC2012_validation_ground_truth.txt": b"2\n1\n2\n",
    }
    return {
        "ILSVRC2012_img_train.tar": tar(inner),
        "ILSVRC2012_img_val.tar": tar(val),
        "ILSVRC2012_devkit_t12.tar.gz": tar(kit, "w:gz"),
    }


@cache
def ml_20m() -> dict[str, bytes]:
    ratings = b"userId,movieId,rating,timestamp\n1,2,3.5,1112486027\n1,29,3.5,1112484676\n7,2,0.5,999\n"
    return {"ml-20m.zip": zipped({"ml-20m/ratings.csv": ratings, "ml-20m/README.txt": b"read me"})}


@cache
def wikitext(number: str = "2") -> dict[str, bytes]:
    text = b" \n = A heading = \n \n the cat sat on <unk> . \n"
    texts = (("train", 9), ("valid", 2), ("test", 1))
    splits = {f"wikitext-{number}/wiki.{split}.tokens": text * count for split, count in texts}
    return {f"wikitext-{number}-v1.zip": zipped(splits)}


@cache
def wmt16() -> dict[str, bytes]:
    english = "The cat sat, didn't it?\n\n" + " ".join(WORDS * 9) + "\nIt\u2028was big.\n"
    german = "Die Katze saß, oder?\nLeer.\n" + " ".join(WORDS * 9) + "\nSie war\u00a0groß.\n"

    def pair(stem: str) -> dict[str, bytes]:
        return {f"{stem}.en": english.encode(), f"{stem}.de": german.encode()}

    def marked(sentences: list[str]) -> bytes:
        return "".join(f'<seg id="{i}">{one}</seg>\n' for i, one in enumerate(sentences, 1)).encode()

    dev = pair("dev/newstest2013") | {
        "dev/newstest2014-deen-src.de.sgm": marked(["Eine Katze &amp; ein Hund.", "Ja."]),
        "dev/newstest2014-deen-ref.en.sgm": marked(["A cat &amp; a dog.", "Yes."]),
        "dev/newstest2014-fren-src.fr.sgm": b"",
    }
    return {
        "training-parallel-europarl-v7.tgz": tar(pair("training/europarl-v7.de-en"), "w:gz"),
        "training-parallel-commoncrawl.tgz": tar(pair("commoncrawl.de-en"), "w:gz"),
        "training-parallel-nc-v11.tgz": tar(pair("training-parallel-nc-v11/news-commentary-v11.de-en"), "w:gz"),
        "dev.tgz": tar(dev, "w:gz"),
    }


CONTENTS: dict[str, Callable[[], dict[str, bytes]]] = {
    "mnist": mnist,
    "bsds500": bsds500,
    "coco": coco,
    "imagenet": imagenet,
    "ml_20m": ml_20m,
    "wikitext": wikitext,
    "wikitext_103": partial(wikitext, "103"),
    "wmt16": wmt16,
}


def miniature(name: str, url: Callable[[str], str]) -> tuple[Dataset, dict[str, bytes]]:
    """Return the data set with small archives at `url(path)`, and their contents by path.

    An archive has a digest here if the real one has.
    """
    dataset, contents = find_dataset(name), CONTENTS[name]()

    def small(archive: Archive) -> Archive:
        content = contents[archive.name]
        digest = archive.digest and hashlib.sha256(content).hexdigest()
        return Archive(archive.name, (url(f"/{archive.name}"),), len(content), digest, "a library")

    halves = {
        name: replace(half, archives=tuple(map(small, half.archives)), unpacked_bytes=100_000)
        for name, half in dataset.halves.items()
    }
    return replace(dataset, halves=halves), {f"/{name}": content for name, content in contents.items()}
