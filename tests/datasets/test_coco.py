"""COCO's layout: annotation files in the real schema, pictures that show the annotated objects, and the real ids."""

import io
import json
from collections import Counter

import numpy as np
import pytest
from PIL import Image

from cotenant.datasets.sets import coco


@pytest.fixture(scope="module")
def annotations() -> dict:
    (part,) = (part for part in coco.recipe(400, 3).files() if part.path == "annotations/instances_train2017.json")
    return json.loads(b"".join(coco.content(part)))


def test_the_published_categories(annotations):
    ids = [category["id"] for category in annotations["categories"]]
    assert len(ids) == 80
    assert sorted(set(range(1, 91)) - set(ids)) == [12, 26, 29, 30, 45, 66, 68, 69, 71, 83]
    assert annotations["categories"][0] == {"supercategory": "person", "id": 1, "name": "person"}
    assert annotations["categories"][-1] == {"supercategory": "indoor", "id": 90, "name": "toothbrush"}
    assert len({category["name"] for category in annotations["categories"]}) == 80
    assert len({category["supercategory"] for category in annotations["categories"]}) == 12


def test_the_schema_and_that_objects_lie_in_their_pictures(annotations):
    assert list(annotations) == ["info", "licenses", "images", "annotations", "categories"]
    assert annotations["images"][0].keys() == {
        *("license", "file_name", "coco_url", "height", "width", "date_captured", "flickr_url", "id")
    }
    assert annotations["annotations"][0].keys() == {
        *("segmentation", "area", "iscrowd", "image_id", "bbox", "category_id", "id")
    }
    assert len({thing["id"] for thing in annotations["annotations"]}) == len(annotations["annotations"])
    pictures = {picture["id"]: picture for picture in annotations["images"]}
    categories = {category["id"] for category in annotations["categories"]}
    assert len(pictures) == 400
    for thing in annotations["annotations"]:
        picture, (x, y, width, height) = pictures[thing["image_id"]], thing["bbox"]
        assert min(x, y) >= 0
        assert min(width, height) > 0
        assert x + width <= picture["width"] + 0.02
        assert y + height <= picture["height"] + 0.02
        assert thing["category_id"] in categories


def test_they_are_as_many_and_as_large_as_the_real_ones(annotations):
    things = annotations["annotations"]
    areas = np.array([thing["bbox"][2] * thing["bbox"][3] for thing in things])
    assert 6.3 < len(things) / 400 < 8.3
    assert 0.3 < (areas < 32**2).mean() < 0.5
    assert 0.15 < (areas > 96**2).mean() < 0.35
    assert 0.25 < Counter(thing["category_id"] for thing in things)[1] / len(things) < 0.37
    assert {thing["iscrowd"] for thing in things} == {0, 1}
    assert 390 <= len({thing["image_id"] for thing in things}) < 400


def area_of(corners: list[float]) -> float:
    """Return the area of a polygon by the shoelace formula."""
    x, y = np.array(corners).reshape(-1, 2).T
    return abs(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1))) / 2


def test_outlines_have_the_area_and_the_box_that_is_said(annotations):
    for thing in annotations["annotations"]:
        if not thing["iscrowd"]:
            (outline,) = thing["segmentation"]
            assert area_of(outline) == pytest.approx(thing["area"], abs=0.05 * sum(thing["bbox"][2:]))
            x, y, width, height = thing["bbox"]
            assert (min(outline[::2]), min(outline[1::2])) == (x, y)
            assert (max(outline[::2]), max(outline[1::2])) == pytest.approx((x + width, y + height), abs=0.011)


def test_the_mask_of_a_crowd_is_its_box(annotations):
    pictures = {picture["id"]: picture for picture in annotations["images"]}
    crowds = [thing for thing in annotations["annotations"] if thing["iscrowd"]]
    for thing in crowds:
        height, width = thing["segmentation"]["size"]
        counts = thing["segmentation"]["counts"]
        assert (height, width) == (pictures[thing["image_id"]]["height"], pictures[thing["image_id"]]["width"])
        assert sum(counts) == height * width
        inside = np.repeat(np.arange(len(counts)) % 2, counts).reshape(width, height).T
        rows, columns = np.nonzero(inside)
        x, y, w, h = (int(place) for place in thing["bbox"])
        assert (columns.min(), rows.min(), np.ptp(columns) + 1, np.ptp(rows) + 1) == (x, y, w, h)
        assert inside.sum() == w * h


def test_a_picture_shows_its_scene():
    for part in list(coco.recipe(4, 0).files())[2:]:
        (data,) = coco.content(part)
        shown, _ = coco.scene(part.arguments[1])
        with Image.open(io.BytesIO(data)) as image:
            assert (image.format, image.mode, image.size) == ("JPEG", "RGB", (shown["width"], shown["height"]))
            assert sorted(image.size)[1] == 640
            assert np.asarray(image).std() > 15
