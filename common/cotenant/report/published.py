"""Published scaling curves of others, beside ours: rows of points, from `targets/published` or any file."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from cotenant.checkout import PUBLISHED
from cotenant.decoding import Positive
from cotenant.errors import CotenantError
from cotenant.report.foreign import read_foreign
from cotenant.report.scaling import Curves, ScalingPoint, Series
from cotenant.stats.interference import efficiency

COMMENT = "#"
_Count = Annotated[int, msgspec.Meta(ge=1)]


class _Published(msgspec.Struct, frozen=True):
    """A row: `rate` in images per second over all devices."""

    model: str
    batch_size_per_device: int
    precision: str
    parallelism: str
    input: str
    node_num: _Count
    gpu_num_per_node: _Count
    rate: Positive


COLUMNS = _Published.__struct_fields__


def published_curves(path: Path) -> Curves:
    """Return the curves of a file, or of a file in `targets/published` named without its suffix.

    A file is CSV with COLUMNS, or the shoot-out's JSON: for each model, points by keys as `1n8g`. Raises CotenantError.
    """
    shipped = {target.stem: target for target in PUBLISHED.glob("*.csv")}
    place = path if path.exists() else shipped.get(str(path), path)
    text = read_foreign(place)
    rows = _from_json(place, text) if text.lstrip().startswith("{") else _from_csv(place, text)
    points: dict[Series, list[_Published]] = defaultdict(list)
    for number, fields in enumerate(rows, 1):
        try:
            row = msgspec.convert(fields, _Published, strict=False)
        except msgspec.ValidationError as error:
            columns = f"Its columns are {', '.join(COLUMNS)}."
            raise CotenantError(f"{place}, row {number}: {error}.", columns) from None
        series = Series(
            row.model, row.batch_size_per_device, row.precision, row.parallelism, row.input, "image", place.name
        )
        points[series].append(row)
    return {series: _points(series, of_series) for series, of_series in points.items()}


def _points(series: Series, rows: list[_Published]) -> list[ScalingPoint]:
    devices = {row: row.node_num * row.gpu_num_per_node for row in rows}
    alone = [row.rate for row in rows if devices[row] == 1]
    return [
        ScalingPoint(
            series,
            row.node_num,
            row.gpu_num_per_node,
            series.foreign,
            (row.rate,),
            efficiency(devices[row], [row.rate], alone),
            None,
        )
        for row in sorted(rows, key=lambda row: (devices[row], row.node_num))
    ]


def _from_csv(path: Path, text: str) -> Sequence[Mapping[str, object]]:
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith(COMMENT)]
    rows = list(csv.DictReader(lines))
    if not rows or tuple(rows[0]) != COLUMNS:
        raise CotenantError(f"{path} is no table of scaling.", f"Its header is {','.join(COLUMNS)}.")
    return rows


def _from_json(path: Path, text: str) -> Sequence[Mapping[str, object]]:
    """Return the points of a file in the shoot-out's form; missing values are empty."""
    try:
        models: Mapping[str, Mapping[str, Mapping[str, float]]] = json.loads(text)
        return [
            {
                "model": model,
                "batch_size_per_device": point["batch_size_per_device"],
                **dict.fromkeys(("precision", "parallelism", "input"), ""),
                **dict(zip(("node_num", "gpu_num_per_node"), key.removesuffix("g").split("n"), strict=True)),
                "rate": point["median_speed"],
            }
            for model, points in models.items()
            for key, point in points.items()
        ]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise CotenantError(
            f"{path} is no table of scaling: {error}.", 'It is {"resnet50": {"1n8g": {"median_speed": ...}}}.'
        ) from None
