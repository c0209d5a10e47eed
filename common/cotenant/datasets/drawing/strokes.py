"""Handwritten-looking digits: a pen follows a skeleton, bent, slanted and scaled anew for each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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
