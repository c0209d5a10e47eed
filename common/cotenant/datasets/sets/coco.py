"""COCO 2017's layout: pictures of about 640 x 480 and their objects in the real schema of its annotation files.

The published set's captions and key points stay packed. Source of the schema: https://cocodataset.org/#format-data
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from PIL import ImageDraw

from cotenant.datasets.dataset import ALL, VALIDATION, Dataset, File, Half, Recipe, count_pictures, published, seeded
from cotenant.datasets.drawing import BYTES_PER_PIXEL, Style, draw_photograph, encode_jpeg

LONG, SHORT, JITTER = 640, 456, 30
OBJECTS = 7.3
MOST_OBJECTS = 90
ANNOTATION_BYTES = 3200  # of one picture and its objects, measured, rounded up
_SPLITS = ("train2017", "val2017")
_ANNOTATIONS, _PICTURE = 0, 1

# The ids of 11 categories that the published set left out are missing.
_BY_GROUP = {
    "person": "1 person",
    "vehicle": "2 bicycle, 3 car, 4 motorcycle, 5 airplane, 6 bus, 7 train, 8 truck, 9 boat",
    "outdoor": "10 traffic light, 11 fire hydrant, 13 stop sign, 14 parking meter, 15 bench",
    "animal": "16 bird, 17 cat, 18 dog, 19 horse, 20 sheep, 21 cow, 22 elephant, 23 bear, 24 zebra, 25 giraffe",
    "accessory": "27 backpack, 28 umbrella, 31 handbag, 32 tie, 33 suitcase",
    "sports": "34 frisbee, 35 skis, 36 snowboard, 37 sports ball, 38 kite, 39 baseball bat, 40 baseball glove,"
    " 41 skateboard, 42 surfboard, 43 tennis racket",
    "kitchen": "44 bottle, 46 wine glass, 47 cup, 48 fork, 49 knife, 50 spoon, 51 bowl",
    "food": "52 banana, 53 apple, 54 sandwich, 55 orange, 56 broccoli, 57 carrot, 58 hot dog, 59 pizza, 60 donut,"
    " 61 cake",
    "furniture": "62 chair, 63 couch, 64 potted plant, 65 bed, 67 dining table, 70 toilet",
    "electronic": "72 tv, 73 laptop, 74 mouse, 75 remote, 76 keyboard, 77 cell phone",
    "appliance": "78 microwave, 79 oven, 80 toaster, 81 sink, 82 refrigerator",
    "indoor": "84 book, 85 clock, 86 vase, 87 scissors, 88 teddy bear, 89 hair drier, 90 toothbrush",
}
CATEGORIES: dict[int, tuple[str, str]] = {
    int(identity): (group, name)
    for group, names in _BY_GROUP.items()
    for identity, _, name in (entry.partition(" ") for entry in names.split(", "))
}
"""The group and the name of each of the 80 category ids."""


def recipe(train: int, val: int) -> Recipe:
    """Return the recipe of a set with this many pictures."""

    def files() -> Iterator[File]:
        counts = (train, val)
        for split, count in enumerate(counts):
            yield File(f"annotations/instances_{_SPLITS[split]}.json", _SPLITS[split], 0, (_ANNOTATIONS, split, count))
        for split, count in enumerate(counts):
            for identity in _identities(split, count):
                yield File(f"{_SPLITS[split]}/{_file_name(identity)}", _SPLITS[split], 1, (_PICTURE, identity))

    picture_bytes = LONG * SHORT * BYTES_PER_PIXEL + 1024
    return Recipe(round((train + val) * (picture_bytes + ANNOTATION_BYTES)) + 20_000, files)


def _identities(split: int, count: int) -> range:
    """Return the ids of a split's pictures, which have gaps and are in no other split."""
    return range(9 + split, 9 + split + 4 * count, 4)


def _file_name(identity: int) -> str:
    return f"{identity:012d}.jpg"


def content(file: File) -> Iterator[bytes]:
    """Yield one JPEG file, or the annotations of a split."""
    kind, *arguments = file.arguments
    return _annotations(*arguments) if kind == _ANNOTATIONS else _picture(*arguments)


def scene(identity: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the image of this id, and the annotations of its objects, as they stand in the annotation file.

    Two fifths of the objects are below 32 x 32 pixels, a quarter above 96 x 96, three in ten of them persons.
    """
    random = seeded(identity, _ANNOTATIONS)
    width, height = LONG, int(random.integers(SHORT - JITTER, SHORT + JITTER + 1))
    if random.random() < 0.25:
        width, height = height, width
    # About one picture in a hundred shows nothing.
    count = min(int(random.geometric(1 / OBJECTS)), MOST_OBJECTS) if random.random() > 0.009 else 0
    sides = 45 * np.exp(random.normal(0.0, 1.0, (count, 1)) + random.normal(0.0, 0.25, (count, 1)) * (1, -1))
    sides = np.clip(sides, 4.0, (width - 1.0, height - 1.0))
    corners = random.random((count, 2)) * ((width, height) - sides)
    boxes = np.round(np.concatenate([corners, sides], axis=1), 2)
    categories = np.where(random.random(count) < 0.3, 0, random.integers(0, len(CATEGORIES), count))
    crowds = random.random(count) < 0.01
    image = {
        "license": 1,
        "file_name": _file_name(identity),
        "coco_url": "",
        "height": height,
        "width": width,
        "date_captured": "2013-11-14 11:18:45",
        "flickr_url": "",
        "id": identity,
    }
    annotations = [
        {
            "segmentation": _run_lengths(box, width, height) if crowd else [_outline(box)],
            # An octagon is its box without four corners, each half of a quarter by a quarter.
            "area": round(box[2] * box[3] * (1.0 if crowd else 0.875), 4),
            "iscrowd": int(crowd),
            "image_id": identity,
            "bbox": box,
            "category_id": tuple(CATEGORIES)[category],
            "id": 1000 * identity + number,
        }
        for number, (box, category, crowd) in enumerate(zip(boxes.tolist(), categories, crowds, strict=True))
    ]
    return image, annotations


def _outline(box: list[float]) -> list[float]:
    """Return x and y of an octagon's corners, one after the other."""
    x, y, width, height = box
    corners = ((1, 0), (3, 0), (4, 1), (4, 3), (3, 4), (1, 4), (0, 3), (0, 1))
    return [round(place, 2) for i, j in corners for place in (x + i * width / 4, y + j * height / 4)]


def _run_lengths(box: list[float], picture_width: int, picture_height: int) -> dict[str, list[int]]:
    """Return a crowd's mask, which is its box, as runs outside and inside it in turn, column after column."""
    x, y, width, height = map(int, box)
    width, height = max(width, 1), max(height, 1)
    gap = picture_height - height
    inside = [run for _ in range(width - 1) for run in (height, gap)]
    before = x * picture_height + y
    after = picture_width * picture_height - before - width * picture_height + gap
    return {"counts": [before, *inside, height, after], "size": [picture_height, picture_width]}


def _picture(identity: int) -> Iterator[bytes]:
    """Yield the JPEG file of a scene, each object an octagon in a colour of its category."""
    image, annotations = scene(identity)
    picture = draw_photograph(Style.of_class(0), seeded(identity, _PICTURE), image["width"], image["height"])
    draw = ImageDraw.Draw(picture)
    for thing in annotations:
        red, green, blue = Style.of_class(thing["category_id"]).colours[0].astype(int).tolist()
        draw.polygon(_outline(thing["bbox"]), fill=(red, green, blue))
    yield encode_jpeg(picture)


def _annotations(split: int, count: int) -> Iterator[bytes]:
    """Yield the annotation file of a split, picture by picture: the full one has hundreds of megabytes."""
    identities = _identities(split, count)
    info = {"description": "Invented pictures in the layout of COCO 2017", "version": "1.0", "year": 2017}
    licenses = [{"url": "", "id": 1, "name": "Invented"}]
    categories = [{"supercategory": group, "id": i, "name": name} for i, (group, name) in CATEGORIES.items()]
    yield f'{{"info": {json.dumps(info)}, "licenses": {json.dumps(licenses)}, "images": ['.encode()
    yield from _joined(scene(identity)[0] for identity in identities)
    yield b'], "annotations": ['
    yield from _joined(thing for identity in identities for thing in scene(identity)[1])
    yield f'], "categories": {json.dumps(categories)}}}'.encode()


def _joined(entries: Iterator[dict[str, Any]]) -> Iterator[bytes]:
    separator = ""
    for entry in entries:
        yield f"{separator}{json.dumps(entry)}".encode()
        separator = ", "


# The annotations, the pictures of train2017, and the pictures of val2017.
_ARCHIVES = published("coco")


def _paths(*splits: str) -> tuple[str, ...]:
    return tuple(path for split in splits for path in (f"annotations/instances_{split}.json", split))


DATASET = Dataset(
    name="coco",
    folder="coco",
    about="JPEG files of about 640 x 480, their objects in JSON",
    sizes={"small": recipe(240, 40), "full": recipe(118_287, 5_000)},
    content=content,
    halves={
        ALL: Half(_ARCHIVES, 20_605_000_000, _paths("train2017", "val2017")),
        VALIDATION: Half(
            (_ARCHIVES[0], _ARCHIVES[2]),
            835_000_000,
            _paths("val2017"),
            {"train2017": "val2017", "annotations/instances_train2017.json": "instances_val2017.json"},
        ),
    },
    rules={r"(annotations/instances_(?:train|val)2017\.json|(?:train|val)2017/\d+\.jpg)": r"\1"},
    check=partial(count_pictures, "*2017"),
)
