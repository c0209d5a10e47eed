"""torchvision's Mask R-CNN as it trains from random weights: frozen norms, and every step the same work."""

import torch
from torch import nn
from torchvision.models.detection import MaskRCNN
from torchvision.models.detection.backbone_utils import resnet_fpn_backbone
from torchvision.models.detection.roi_heads import RoIHeads
from torchvision.models.resnet import Bottleneck

OBJECT_SHARE = 0.25
RESIDUAL_SCALE = 0.25


def mask_rcnn(classes: int, height: int, width: int, regions: int) -> MaskRCNN:
    """Return the network for images of one size; 44,347,573 parameters with 81 classes.

    Three stages of its backbone train. `regions` of each image reach its heads.
    """
    backbone = resnet_fpn_backbone(backbone_name="resnet50", weights=None, trainable_layers=3)
    temper(backbone.body)
    sizes = {"min_size": min(height, width), "max_size": max(height, width)}
    network = MaskRCNN(backbone, classes, **sizes, box_batch_size_per_image=regions)
    network.roi_heads = EvenHeads.of(network.roi_heads, regions)
    return network


def temper(body: nn.Module) -> None:
    """Scale down the output that each block adds to its input.

    Frozen norms do not normalise an untrained network: its activations would double with every block.
    """
    for block in body.modules():
        if isinstance(block, Bottleneck):
            nn.init.constant_(block.bn3.weight, RESIDUAL_SCALE)


class EvenHeads(RoIHeads):
    """Heads that train on equally many regions in every step: a quarter of them on objects, as after some training.

    A network at its beginning proposes few regions with objects, and these decide how often the mask head runs.
    Regions are drawn with repetition; the objects' own boxes are among them, so there is always one to be drawn.
    """

    @classmethod
    def of(cls, heads: RoIHeads, regions: int) -> "EvenHeads":
        """Return heads of the same parts, with torchvision's own thresholds."""
        boxes = (heads.box_roi_pool, heads.box_head, heads.box_predictor)
        masks = (heads.mask_roi_pool, heads.mask_head, heads.mask_predictor)
        overlaps, weights, detections = (0.5, 0.5), None, (0.05, 0.5, 100)
        return cls(*boxes, *overlaps, regions, OBJECT_SHARE, weights, *detections, *masks)

    def subsample(self, labels: list[torch.Tensor]) -> list[torch.Tensor]:
        """Return the indices of the regions drawn from each image; the host does not read their number."""
        return [self._drawn(label_r) for label_r in labels]

    def _drawn(self, label_r: torch.Tensor) -> torch.Tensor:
        total = self.fg_bg_sampler.batch_size_per_image
        on_objects = round(OBJECT_SHARE * total)
        kinds = ((label_r > 0, on_objects), (label_r == 0, total - on_objects))
        return torch.cat([torch.multinomial(kind.float(), count, replacement=True) for kind, count in kinds])
