"""The default boxes of SSD, 8,732 in 300 x 300 pixels, and how objects are matched to them, a whole batch at once and
without host reads.

Boxes are (left, top, right, bottom) as fractions of the image's sides. b images, o objects, a default boxes.
"""

import itertools
import math

import torch

SIDE = 300
STRIDE = 8
"""Pixels from one place of the first map to the next."""
HALVED = 3
"""The number of maps that have half the side of the one before; each later map is two places smaller."""
SCALES = (21, 45, 99, 153, 207, 261, 315)
RATIOS = ((2,), (2, 3), (2, 3), (2, 3), (2,), (2,))
SHAPES = tuple(2 + 2 * len(ratios) for ratios in RATIOS)
"""The default boxes at each place of each map."""

CENTRE_VARIANCE, SIZE_VARIANCE = 0.1, 0.2
OVERLAP = 0.5
BACKGROUND = 0


def maps_of(side: int) -> list[int]:
    """Return the sides of a picture's maps: of 300 pixels, these are 38, 19, 10, 5, 3 and 1; of fewer, fewer."""
    maps = [-(-side // STRIDE)]
    while len(maps) < len(SHAPES) and maps[-1] > (1 if len(maps) <= HALVED else 2):
        maps.append(-(-maps[-1] // 2) if len(maps) <= HALVED else maps[-1] - 2)
    return maps


def default_boxes(pixels: int = SIDE) -> torch.Tensor:
    """Return centre x, centre y, width and height of every default box, (4, a), clamped to the image.

    Of one map, all boxes of one shape come first, row by row: the order in which a convolution writes them.
    """
    boxes, scales = [], [scale / SIDE for scale in SCALES]
    for index, (side, (scale, larger), ratios) in enumerate(
        zip(maps_of(pixels), itertools.pairwise(scales), RATIOS, strict=False)
    ):
        step = STRIDE * 2**index / pixels if index <= HALVED else 1 / side
        between = math.sqrt(scale * larger)
        shapes = [(scale, scale), (between, between)]
        for root in map(math.sqrt, ratios):
            shapes += [(scale * root, scale / root), (scale / root, scale * root)]
        for (width, height), row, column in itertools.product(shapes, range(side), range(side)):
            boxes.append(((column + 0.5) * step, (row + 0.5) * step, width, height))
    return torch.tensor(boxes).clamp(0, 1).T.contiguous()


class Matcher:
    """Computes the targets of each default box: a class, and the offset to its object."""

    def __init__(self, device: torch.device, pixels: int = SIDE) -> None:
        self.defaults_4a = default_boxes(pixels).to(device)
        centre, size = self.defaults_4a.split(2)
        self.corners_4a = torch.cat([centre - size / 2, centre + size / 2])

    def __call__(self, boxes_bo4: torch.Tensor, labels_bo: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return offsets (b, 4, a) and classes (b, a) for objects padded with the label 0.

        A default box belongs to the object it overlaps most, if by more than half, and the best one of each
        object belongs to it in any case. The offsets of background boxes are 0.
        """
        overlap_boa = jaccard(boxes_bo4, self.corners_4a)
        overlap_ba, object_ba = overlap_boa.max(1)
        forced_ba = self.best_of_each(overlap_boa, labels_bo)
        is_forced_ba = forced_ba >= 0
        object_ba = torch.where(is_forced_ba, forced_ba, object_ba)
        positive_ba = is_forced_ba | (overlap_ba > OVERLAP)
        classes_ba = torch.where(positive_ba, labels_bo.gather(1, object_ba), BACKGROUND)
        matched_b4a = boxes_bo4.mT.gather(2, object_ba[:, None].expand(-1, 4, -1))
        matched_b4a = torch.where(positive_ba[:, None], matched_b4a, self.corners_4a)
        return self.encode(matched_b4a), classes_ba

    def best_of_each(self, overlap_boa: torch.Tensor, labels_bo: torch.Tensor) -> torch.Tensor:
        """Return for each default box the last object that it fits best, or -1."""
        b, o, a = overlap_boa.shape
        # Padding is written to an extra place, which is cut off: a selection by mask would make the host wait.
        best_bo = torch.where(labels_bo == BACKGROUND, a, overlap_boa.argmax(2))
        objects_bo = torch.arange(o, device=best_bo.device).expand(b, o)
        nobody = best_bo.new_full((b, a + 1), -1)
        return nobody.scatter_reduce_(1, best_bo, objects_bo, "amax")[:, :a]

    def encode(self, boxes_b4a: torch.Tensor) -> torch.Tensor:
        """Return boxes as offsets from the default boxes."""
        left_top, right_bottom = boxes_b4a.split(2, dim=1)
        centre, size = self.defaults_4a.split(2)
        move = ((left_top + right_bottom) / 2 - centre) / size / CENTRE_VARIANCE
        return torch.cat([move, ((right_bottom - left_top) / size).log() / SIZE_VARIANCE], dim=1)


def jaccard(boxes_bo4: torch.Tensor, corners_4a: torch.Tensor) -> torch.Tensor:
    """Return intersection over union of every object with every default box, (b, o, a)."""
    left, top, right, bottom = boxes_bo4[..., None].unbind(2)
    width = torch.minimum(right, corners_4a[2]) - torch.maximum(left, corners_4a[0])
    height = torch.minimum(bottom, corners_4a[3]) - torch.maximum(top, corners_4a[1])
    intersection = width.clamp_(min=0).mul_(height.clamp_(min=0))
    area = (corners_4a[2] - corners_4a[0]) * (corners_4a[3] - corners_4a[1])
    return intersection / ((right - left) * (bottom - top) + area - intersection)
