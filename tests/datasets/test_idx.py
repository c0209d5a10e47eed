"""Reading and writing idx files, whole and broken ones."""

import gzip
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cotenant.datasets.sets.mnist import idx_header, read_idx
from cotenant.errors import CotenantError

DTYPES = ["u1", "i1", "i2", "i4", "f4", "f8"]
VALID = idx_header(np.dtype("u1"), (3, 2, 2)) + bytes(range(12))


def read_bytes(data: bytes):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "set", "file")
        path.parent.mkdir()
        path.write_bytes(data)
        return read_idx(path)


@settings(deadline=None)
@given(st.sampled_from(DTYPES), st.lists(st.integers(1, 5), min_size=1, max_size=4), st.booleans())
def test_what_is_written_is_read(dtype, shape, big_endian):
    array = np.arange(np.prod(shape)).reshape(shape).astype(np.dtype(dtype).newbyteorder(">" if big_endian else "="))
    back = read_bytes(idx_header(array.dtype, array.shape) + array.astype(array.dtype.newbyteorder(">")).tobytes())
    np.testing.assert_array_equal(back, array)
    assert back.dtype == np.dtype(dtype)
    assert back.dtype.isnative
    assert back.flags.writeable


@settings(deadline=None)
@given(st.binary(max_size=64))
def test_any_bytes_are_an_array_or_a_sentence(data):
    check(data)


@settings(deadline=None)
@given(st.integers(0, len(VALID)), st.binary(max_size=8), st.integers(0, 8), st.booleans())
def test_damaged_files_are_an_array_or_a_sentence(place, inserted, removed, zipped):
    data = gzip.compress(VALID) if zipped else VALID
    check(data[:place] + inserted + data[place + removed :])


def check(data: bytes) -> None:
    try:
        assert read_bytes(data).size > 0
    except CotenantError as error:
        refusal = error
    else:
        return
    assert "is not a complete idx file: " in refusal.sentence
    assert "python -m cotenant.datasets mnist --root" in refusal.remedy


def test_gzipped_files_need_no_suffix():
    np.testing.assert_array_equal(read_bytes(gzip.compress(VALID)), np.arange(12).reshape(3, 2, 2))


def test_why_a_file_is_refused():
    for data, why in (
        (b"", "it begins with nothing"),
        (b"\0\0\x07\x01", "which is no idx header"),
        (b"\0\0\x08\0", "which is no idx header"),
        (b"\0\0\x08\x09", "which is no idx header"),
        (VALID[:10], "it ends inside its header, after 10 bytes"),
        (VALID[:-1], r"the shape \(3, 2, 2\), of 28 bytes in all, and has 27"),
        (VALID + b"x", "28 bytes in all, and has 29"),
        (idx_header(np.dtype("f8"), (2**32 - 1,) * 8), "bytes in all, and has 36"),
        (b"\0\0\x08\x01\0\0\0\0", r"it declares the shape \(0,\)"),
        (gzip.compress(VALID, mtime=0)[:-3], "its gzip stream is broken"),
    ):
        with pytest.raises(CotenantError, match=why):
            read_bytes(data)


def test_a_missing_file_says_how_to_make_it(tmp_path):
    with pytest.raises(CotenantError) as caught:
        read_idx(tmp_path / "mnist" / "train-images-idx3-ubyte")
    assert str(caught.value).startswith(f"There is no {tmp_path}/mnist/train-images-idx3-ubyte. Make the set first")
    assert caught.value.remedy.endswith(f"--root {tmp_path}")


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(CotenantError, match="cannot be read: Is a directory"):
        read_idx(tmp_path)


def test_what_the_format_cannot_hold():
    for dtype, shape in (("u8", (1,)), ("?", (1,)), ("c8", (1,)), ("u1", ()), ("u1", (0, 3))):
        with pytest.raises(ValueError, match="idx files cannot hold"):
            idx_header(np.dtype(dtype), shape)
