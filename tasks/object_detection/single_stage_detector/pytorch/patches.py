"""The random patches that SSD trains on (Liu et al. 2016, arXiv:1512.02325, section 2.2), each a part of its image.

t patches that are tried, o objects; all boxes are (left, top, right, bottom) as fractions of the image's sides.
"""

import math
import random

import torch
from boxes import jaccard

LEAST_OVERLAPS = (None, 0.0, 0.1, 0.3, 0.5, 0.7, 0.9)
"""Least overlaps of a patch with an object, as intersection over union; None leaves the image whole."""
LEAST_SIDE, LARGEST_RATIO = 0.3, 2
TRIES = 40


def random_patch(boxes_o4: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor] | None:
    """Return a patch (4) and a mask of the objects (o) with centres in it, at least one; None for the whole image.

    A least overlap is drawn first, and drawn again if none of the tried patches overlaps an object so much.
    """
    centre_o2 = (boxes_o4[:, :2] + boxes_o4[:, 2:]) / 2
    while (least := random.choice(LEAST_OVERLAPS)) is not None:
        size_t2 = torch.empty(TRIES, 2).uniform_(LEAST_SIDE, 1)
        corner_t2 = torch.rand(TRIES, 2) * (1 - size_t2)
        patch_t4 = torch.cat([corner_t2, corner_t2 + size_t2], dim=1)
        inside_to = ((centre_o2 > patch_t4[:, None, :2]) & (centre_o2 < patch_t4[:, None, 2:])).all(2)
        overlaps_to = jaccard(patch_t4[None], boxes_o4.T)[0] >= least
        shaped_t = size_t2.amax(1) <= LARGEST_RATIO * size_t2.amin(1)
        fits_t = shaped_t & (inside_to & overlaps_to).any(1)
        if fits_t.any():
            first = fits_t.int().argmax()
            return patch_t4[first], inside_to[first]
    return None


def cut(image_3hw: torch.Tensor, patch: torch.Tensor) -> torch.Tensor:
    """Return this part of an image, up to whole pixels."""
    height, width = image_3hw.shape[1:]
    left, top, right, bottom = patch.tolist()
    rows = slice(math.floor(top * height), math.ceil(bottom * height))
    return image_3hw[:, rows, math.floor(left * width) : math.ceil(right * width)]


def seen_in(patch: torch.Tensor, boxes_o4: torch.Tensor) -> torch.Tensor:
    """Return boxes as fractions of a patch's sides, cut off at its borders."""
    corner_2, size_2 = patch[:2], patch[2:] - patch[:2]
    return ((boxes_o4 - corner_2.repeat(2)) / size_2.repeat(2)).clamp(0, 1)
