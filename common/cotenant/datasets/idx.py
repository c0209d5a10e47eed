"""MNIST's idx format: two zero bytes, a type, the number of dimensions, the dimensions, the values.

All are big-endian. Source: http://yann.lecun.com/exdb/mnist/
"""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cotenant.errors import CotenantError

_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: "i2", 0x0C: "i4", 0x0D: "f4", 0x0E: "f8"}
_MAX_DIMENSIONS = 8
_GZIP_MAGIC = b"\x1f\x8b"


def idx_header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """Return the header of an idx file; raises ValueError for a type or shape that the format cannot hold."""
    code = {name: code for code, name in _TYPES.items()}.get(dtype.str[1:])
    if code is None:
        raise ValueError(f"idx files cannot hold {dtype}")
    if not 1 <= len(shape) <= _MAX_DIMENSIONS or not all(0 < extent < 2**32 for extent in shape):
        raise ValueError(f"idx files cannot hold the shape {shape}")
    return struct.pack(f">HBB{len(shape)}I", 0, code, len(shape), *shape)


def write_idx(path: Path | str, array: NDArray[Any]) -> None:
    """Write an array as an idx file; raises ValueError for a type or shape that the format cannot hold."""
    header = idx_header(array.dtype, array.shape)
    Path(path).write_bytes(header + array.astype(array.dtype.newbyteorder(">")).tobytes())


def read_idx(path: Path | str) -> NDArray[Any]:
    """Return the array of an idx file, plain or gzipped: writable, in the processor's own byte order.

    Raises CotenantError where the file is missing, unreadable, or not of the length that it declares.
    """
    path = Path(path)
    try:
        data = path.read_bytes()
        if data.startswith(_GZIP_MAGIC):
            data = gzip.decompress(data)
    except FileNotFoundError:
        remedy = f"Make the set first: python -m cotenant.datasets mnist --root {path.absolute().parent.parent}"
        raise CotenantError(f"There is no {path}.", remedy) from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise _damaged(path, f"its gzip stream is broken ({error})") from None
    except OSError as error:
        raise CotenantError(f"{path} cannot be read: {error.strerror}.", "Mend its permissions or its disk.") from None
    return _decode(data, path)


def _decode(data: bytes, path: Path) -> NDArray[Any]:
    """Return the array that these bytes of an idx file declare."""
    if len(data) < 4 or data[:2] != b"\0\0" or data[2] not in _TYPES:
        raise _damaged(path, f"it begins with {data[:4].hex(' ') or 'nothing'}, which is no idx header")
    dimensions = data[3]
    if not 1 <= dimensions <= _MAX_DIMENSIONS:
        raise _damaged(path, f"it declares {dimensions} dimensions, 1 to {_MAX_DIMENSIONS} make sense")
    start = 4 + 4 * dimensions
    if len(data) < start:
        raise _damaged(path, f"it ends inside its header, after {len(data)} bytes")
    shape = struct.unpack_from(f">{dimensions}I", data, 4)
    if 0 in shape:
        raise _damaged(path, f"it declares the empty shape {shape}")
    dtype = np.dtype(_TYPES[data[2]]).newbyteorder(">")
    expected = start + math.prod(shape) * dtype.itemsize
    if len(data) != expected:
        raise _damaged(path, f"its shape {shape} needs {expected:,} bytes, it has {len(data):,}")
    values = np.frombuffer(data, dtype, offset=start).reshape(shape)
    return values.astype(dtype.newbyteorder("="))


def _damaged(path: Path, why: str) -> CotenantError:
    folder = path.absolute().parent
    return CotenantError(
        f"{path} is not a complete idx file: {why}.",
        f"Move {folder} away, then make the set: python -m cotenant.datasets mnist --root {folder.parent}",
    )
