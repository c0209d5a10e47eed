"""Draws photographs that compress as real ones do: slow colour, gratings, shapes, texture on every scale."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from cotenant.datasets.dataset import seeded

QUALITY = 90
# Measured at this quality on the photographs drawn here, rounded up.
BYTES_PER_PIXEL = 0.37
COARSE = 16
GRATINGS = 5


@dataclass(frozen=True)
class Style:
    """The look of a class: two colours (2, 3), gratings (GRATINGS, 2) in cycles per longer side."""

    colours: NDArray[np.float64]
    gratings: NDArray[np.float64]

    @classmethod
    def of_class(cls, label: int) -> Style:
        """Return the style of class `label`, always the same."""
        random = seeded(label)
        return cls(random.uniform(40.0, 215.0, (2, 3)), random.uniform(-5.0, 5.0, (GRATINGS, 2)))


def draw_photograph(style: Style, random: Generator, width: int, height: int) -> Image.Image:
    """Return an RGB picture of `width` x `height` pixels in this style."""
    picture = _background(style, random, width, height)
    _add_shapes(picture, style, random)
    light = _texture(random, width, height)
    shaded = np.asarray(picture, dtype=np.float32) + light[:, :, None]
    return Image.fromarray(np.clip(shaded, 0.0, 255.0).astype(np.uint8))


def photograph(path: str, label: int, width: int, height: int, *, jitter: int = 0, upright: float) -> bytes:
    """Return the JPEG file of this name, in the style of a class: the same bytes from any worker, in any order.

    Width and height vary by up to `jitter` pixels; the share `upright` of all pictures stands upright.
    """
    random = seeded(*path.encode())
    if jitter:
        width += int(random.integers(-jitter, jitter + 1))
        height += int(random.integers(-jitter, jitter + 1))
    if upright and random.random() < upright:
        width, height = height, width
    return encode_jpeg(draw_photograph(Style.of_class(label), random, width, height))


def encode_jpeg(picture: Image.Image) -> bytes:
    """Return the picture as the bytes of a JPEG file."""
    stream = BytesIO()
    picture.save(stream, "JPEG", quality=QUALITY)
    return stream.getvalue()


def _background(style: Style, random: Generator, width: int, height: int) -> Image.Image:
    """Return the class's two colours mixed by its gratings; drawn coarsely, for nothing in it is fine."""
    y, x = np.mgrid[0 : height // COARSE + 2, 0 : width // COARSE + 2].astype(np.float64) * COARSE / max(width, height)
    phases = random.random((GRATINGS, 1, 1))
    across, down = (style.gratings * random.normal(1.0, 0.15, (GRATINGS, 2))).T[:, :, None, None]
    mix = 0.5 + 0.5 * np.sin(2 * np.pi * (across * x + down * y + phases)).mean(axis=0)
    colours = style.colours + random.normal(0.0, 20.0, (2, 3))
    coarse = colours[0] + mix[:, :, None] * (colours[1] - colours[0])
    return Image.fromarray(np.clip(coarse, 0, 255).astype(np.uint8)).resize((width, height), Image.Resampling.BICUBIC)


def _add_shapes(picture: Image.Image, style: Style, random: Generator) -> None:
    """Draw a handful of ellipses and triangles, so that there are edges as well."""
    draw = ImageDraw.Draw(picture)
    extent = np.array(picture.size)
    for _ in range(int(random.integers(4, 10))):
        colour = np.clip(style.colours[random.integers(2)] + random.normal(0.0, 45.0, 3), 0, 255).astype(int)
        red, green, blue = (int(value) for value in colour)
        centre = random.random(2) * extent
        if random.random() < 0.5:
            radii = random.uniform(0.03, 0.22, 2) * extent
            draw.ellipse([*(centre - radii), *(centre + radii)], fill=(red, green, blue))
        else:
            corners = centre + random.normal(0.0, 0.15, (3, 2)) * extent
            draw.polygon([(float(x), float(y)) for x, y in corners], fill=(red, green, blue))


def _texture(random: Generator, width: int, height: int) -> NDArray[np.float32]:
    """Return light and shade (height, width) whose strength falls with frequency, as in natural images.

    Its amount differs from picture to picture, and with it the size of the file.
    """
    light = np.zeros((height, width), np.float32)
    for cell, strength in ((32, 16.0), (12, 11.0), (5, 9.0), (2, 8.0)):
        noise = random.standard_normal((height // cell + 2, width // cell + 2), np.float32) * np.float32(strength)
        light += np.asarray(Image.fromarray(noise).resize((width, height), Image.Resampling.BILINEAR))
    light += random.standard_normal((height, width), np.float32) * np.float32(5.0)
    return light * np.float32(random.uniform(0.6, 1.7))
