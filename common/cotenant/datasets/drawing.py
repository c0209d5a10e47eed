"""What a set's files show: photographs and handwritten digits.

A photograph compresses as a real one does: slow colour, gratings, shapes, texture on every scale. A digit is drawn by a
pen that follows a skeleton, bent, slanted and scaled anew for each.
"""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

QUALITY = 90
# Measured at this quality on the photographs drawn here, rounded up.
BYTES_PER_PIXEL = 0.37
COARSE = 16
GRATINGS = 5
SIDE = 28
POINTS = 40

# Corners of the ten digits in a unit box, x to the right and y down.
_SKELETONS: tuple[tuple[tuple[float, float], ...], ...] = (
    ((0.5, 0.0), (0.15, 0.2), (0.05, 0.55), (0.25, 0.95), (0.6, 1.0), (0.9, 0.7), (0.9, 0.3), (0.5, 0.0)),
    ((0.35, 0.2), (0.55, 0.0), (0.52, 0.5), (0.5, 1.0)),
    ((0.1, 0.2), (0.45, 0.0), (0.85, 0.2), (0.7, 0.5), (0.1, 0.95), (0.5, 0.9), (0.95, 0.95)),
    ((0.15, 0.1), (0.6, 0.0), (0.8, 0.25), (0.4, 0.47), (0.85, 0.7), (0.6, 1.0), (0.1, 0.9)),
    ((0.2, 0.0), (0.1, 0.55), (0.85, 0.5), (0.75, 0.1), (0.72, 0.5), (0.7, 1.0)),
    ((0.9, 0.0), (0.25, 0.05), (0.2, 0.45), (0.7, 0.45), (0.85, 0.75), (0.5, 1.0), (0.1, 0.9)),
    ((0.7, 0.0), (0.25, 0.4), (0.1, 0.8), (0.5, 1.0), (0.85, 0.75), (0.55, 0.55), (0.15, 0.75)),
    ((0.05, 0.05), (0.5, 0.05), (0.9, 0.05), (0.6, 0.5), (0.4, 1.0)),
    ((0.8, 0.15), (0.4, 0.0), (0.2, 0.25), (0.8, 0.7), (0.5, 1.0), (0.15, 0.75), (0.6, 0.45), (0.8, 0.15)),
    ((0.8, 0.25), (0.4, 0.5), (0.15, 0.25), (0.5, 0.0), (0.8, 0.2), (0.75, 0.6), (0.6, 1.0)),
)


@dataclass(frozen=True)
class Style:
    """What a class has in common: two colours (2, 3), gratings (GRATINGS, 2) in cycles per longer side."""

    colours: NDArray[np.float64]
    gratings: NDArray[np.float64]

    @classmethod
    def of_class(cls, label: int, seed: int) -> Style:
        """Return the style of class `label`, always the same for the same seed."""
        random = np.random.default_rng([seed, label])
        return cls(random.uniform(40.0, 215.0, (2, 3)), random.uniform(-5.0, 5.0, (GRATINGS, 2)))


def draw_photograph(style: Style, random: np.random.Generator, width: int, height: int) -> Image.Image:
    """Return an RGB picture of `width` x `height` pixels in this style."""
    picture = _background(style, random, width, height)
    _add_shapes(picture, style, random)
    light = _texture(random, width, height)
    shaded = np.asarray(picture, dtype=np.float32) + light[:, :, None]
    return Image.fromarray(np.clip(shaded, 0.0, 255.0).astype(np.uint8))


def encode_jpeg(picture: Image.Image) -> bytes:
    """Return the picture as the bytes of a JPEG file."""
    stream = BytesIO()
    picture.save(stream, "JPEG", quality=QUALITY)
    return stream.getvalue()


def _background(style: Style, random: np.random.Generator, width: int, height: int) -> Image.Image:
    """Return the class's two colours mixed by its gratings; drawn coarsely, for nothing in it is fine."""
    y, x = np.mgrid[0 : height // COARSE + 2, 0 : width // COARSE + 2].astype(np.float64) * COARSE / max(width, height)
    phases = random.random((GRATINGS, 1, 1))
    across, down = (style.gratings * random.normal(1.0, 0.15, (GRATINGS, 2))).T[:, :, None, None]
    mix = 0.5 + 0.5 * np.sin(2 * np.pi * (across * x + down * y + phases)).mean(axis=0)
    colours = style.colours + random.normal(0.0, 20.0, (2, 3))
    coarse = colours[0] + mix[:, :, None] * (colours[1] - colours[0])
    return Image.fromarray(np.clip(coarse, 0, 255).astype(np.uint8)).resize((width, height), Image.Resampling.BICUBIC)


def _add_shapes(picture: Image.Image, style: Style, random: np.random.Generator) -> None:
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


def _texture(random: np.random.Generator, width: int, height: int) -> NDArray[np.float32]:
    """Return light and shade (height, width) whose strength falls with frequency, as in natural images.

    How much of it there is differs from picture to picture, and with it the size of the file.
    """
    light = np.zeros((height, width), np.float32)
    for cell, strength in ((32, 16.0), (12, 11.0), (5, 9.0), (2, 8.0)):
        noise = random.standard_normal((height // cell + 2, width // cell + 2), np.float32) * np.float32(strength)
        light += np.asarray(Image.fromarray(noise).resize((width, height), Image.Resampling.BILINEAR))
    light += random.standard_normal((height, width), np.float32) * np.float32(5.0)
    return light * np.float32(random.uniform(0.6, 1.7))


def draw_digits(labels: NDArray[np.uint8], random: np.random.Generator) -> NDArray[np.uint8]:
    """Return one image (n, 28, 28) per label (n,): four fifths background, on average 1/8 bright."""
    paths = _resample(np.stack([_evenly(np.array(skeleton)) for skeleton in _SKELETONS])[labels], random)
    pen = random.uniform(0.8, 1.25, (len(labels), 1, 1)).astype(np.float32)
    pixels = np.arange(SIDE, dtype=np.float32)
    columns = np.exp(-((pixels - paths[:, :, :1]) ** 2) / (2 * pen**2))
    rows = np.exp(-((pixels - paths[:, :, 1:]) ** 2) / (2 * pen**2))
    ink = rows.transpose(0, 2, 1) @ columns
    image: NDArray[np.uint8] = (255 * np.clip(0.7 * ink - 0.3, 0.0, 1.0)).astype(np.uint8)
    return image


def _evenly(corners: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return POINTS points (POINTS, 2) at equal distances along the line through these corners."""
    lengths = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(corners, axis=0).T))])
    places = np.linspace(0.0, lengths[-1], POINTS)
    return np.stack([np.interp(places, lengths, corners[:, axis]) for axis in (0, 1)], axis=1)


def _resample(paths: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.float32]:
    """Return the unit-box paths (n, POINTS, 2) in pixels: bent by slow waves, slanted, scaled."""
    n = len(paths)
    time = np.linspace(0.0, 1.0, POINTS)[None, :, None]
    waves = random.integers(1, 4, (n, 1, 2))
    bend = random.normal(0.0, 0.05, (n, 1, 2)) * np.sin(2 * np.pi * (waves * time + random.random((n, 1, 2))))
    centred = paths - 0.5 + bend
    centred[:, :, 0] += random.normal(-0.1, 0.15, (n, 1)) * centred[:, :, 1]
    extent = random.normal((13.0, 18.0), 1.2, (n, 1, 2))
    centre = random.normal(SIDE / 2 - 0.5, 0.6, (n, 1, 2))
    return (centred * extent + centre).astype(np.float32)
