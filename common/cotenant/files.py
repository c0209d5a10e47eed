"""Directories held open, paths that may have become a pipe, a device or a link, and waiting for a descriptor."""

from __future__ import annotations

import errno
import os
import select
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Literal, Self

Mode = Literal["rb", "r+b", "ab", "xb"]
_FLAGS: dict[Mode, int] = {
    "rb": os.O_RDONLY,
    "r+b": os.O_RDWR | os.O_CREAT,
    "ab": os.O_WRONLY | os.O_APPEND | os.O_CREAT,
    "xb": os.O_RDWR | os.O_CREAT | os.O_EXCL,
}
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_KINDS = {
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFDIR: "a directory",
    stat.S_IFREG: "a file",
}


def open_regular(path: Path | str, *, follow: bool = False, mode: Mode = "rb", within: int | None = None) -> BinaryIO:
    """Open a regular file, without waiting: a pipe would wait for its other end, a device may have no end.

    A link is followed if `follow` is set. `within` is the descriptor of the directory of a relative path.
    `mode` is as for open(), but `r+b` makes a missing file, and `xb` may read the file it made.
    Raises OSError: IsADirectoryError for a directory, EINVAL for a pipe, a socket or a device.
    """
    flags = _FLAGS[mode] | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    descriptor = os.open(path, flags, 0o666, dir_fd=within)
    kind = stat.S_IFMT(os.fstat(descriptor).st_mode)
    if kind != stat.S_IFREG:
        os.close(descriptor)
        if kind == stat.S_IFDIR:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    return open(descriptor, "r+b" if mode == "xb" else mode)


def content_of(path: Path, most_bytes: int = -1, *, follow: bool = False) -> bytes:
    """Return a regular file's content, at most its first `most_bytes`. Raises OSError, as `open_regular` does."""
    with open_regular(path, follow=follow) as file:
        return file.read(most_bytes)


class Directory:
    """A directory held open: names are looked up in it, even if its own name leads elsewhere by now.

    Another user with write access can replace a file by a pipe or a link: these are neither followed nor waited for.
    All methods raise OSError.
    """

    def __init__(self, path: Path, descriptor: int | None = None) -> None:
        """Open a directory by its name, following links; `descriptor` is an already open one's."""
        self.path = path
        self._descriptor = os.open(path, _DIRECTORY) if descriptor is None else descriptor

    def __str__(self) -> str:
        return str(self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def fileno(self) -> int:
        return self._descriptor

    def close(self) -> None:
        os.close(self._descriptor)

    @property
    def leads_elsewhere(self) -> bool:
        """True if its name now leads to another directory, or nowhere."""
        try:
            return not os.path.samestat(self.path.stat(), os.fstat(self._descriptor))
        except OSError:
            return True

    @property
    def place(self) -> Path:
        """Its present path as the kernel names it, followed by ` (deleted)` if it was removed."""
        return Path(f"/proc/self/fd/{self._descriptor}").readlink()

    def folder(self, name: str) -> Directory:
        """Return a directory in this one, made if it is missing."""
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=self._descriptor)
        return Directory(self.path / name, os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=self._descriptor))

    def names(self) -> list[str]:
        return os.listdir(self._descriptor)  # noqa: PTH208 # a Path needs a name, and this is a descriptor

    def open(self, name: str, mode: Mode = "rb") -> BinaryIO:
        """Open a regular file, as `open_regular` does."""
        return open_regular(name, mode=mode, within=self._descriptor)

    def remove(self, name: str) -> None:
        """Remove a file, a pipe or a link, if it exists."""
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self._descriptor)

    def write(self, name: str, content: bytes, *, new: bool = False) -> None:
        """Write a file whole or not at all. Raises FileExistsError if it should be `new` and exists."""
        with self.written(name, new=new) as temporary, self.open(temporary, "xb") as file:
            file.write(content)

    @contextmanager
    def written(self, name: str, *, new: bool = False) -> Iterator[str]:
        """Yield the name of a temporary file to write, then sync and rename it: `name` is whole or does not exist."""
        # Not made from `name`, which may have the greatest length already. The process id names the writer, so that
        # cleaning up after a killed one spares the files of others.
        temporary = f".{os.getpid()}-{os.urandom(8).hex()}.tmp"
        try:
            yield temporary
            with self.open(temporary) as file:
                os.fsync(file.fileno())
            if new:
                self._name_new(temporary, name)
            else:
                self._rename(temporary, name)
        finally:
            self.remove(temporary)
        os.fsync(self._descriptor)

    def kind_of(self, name: str) -> int:
        """Return the kind of the entry of this name, as in `st_mode`; 0 if there is none."""
        try:
            return stat.S_IFMT(os.stat(name, dir_fd=self._descriptor, follow_symlinks=False).st_mode)
        except FileNotFoundError:
            return 0

    def set_aside(self, name: str) -> str:
        """Rename the entry of this name; return its kind and its new name in words."""
        kind, aside = self.kind_of(name), f"{name}.{os.urandom(4).hex()}.aside"
        self._rename(name, aside)
        return f"{_KINDS.get(kind, 'a device')}, which is {aside} now"

    def set_beside(self, name: str, suffix: str) -> None:
        """Rename the entry of this name to one with this suffix; a link is not followed."""
        self._rename(name, name + suffix)
        os.fsync(self._descriptor)

    def _rename(self, name: str, to: str) -> None:
        os.rename(name, to, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)

    def _name_new(self, temporary: str, name: str) -> None:
        """Name a file unless the name is taken. Raises FileExistsError."""
        try:
            os.link(temporary, name, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor, follow_symlinks=False)
        except FileExistsError:
            # Over NFS a repeated request finds the link made by the first one if its answer was lost (open(2)).
            if os.stat(temporary, dir_fd=self._descriptor).st_nlink != 2:
                raise
        except OSError:
            # A file system without hard links: another process may take the name between these two lines.
            if name in self.names():
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name) from None
            self._rename(temporary, name)


@contextmanager
def opened(place: Path | Directory) -> Iterator[Directory]:
    """Yield an open directory; one given by its path is closed afterwards."""
    if isinstance(place, Directory):
        yield place
        return
    with Directory(place) as directory:
        yield directory


def sync_name(path: Path) -> None:
    """Bring the name of a new file or folder to the disk. Raises OSError."""
    with Directory(path.parent) as directory:
        os.fsync(directory.fileno())


def readable(descriptor: int, wait_s: float = 0.0) -> bool:
    """Return whether there is data to read, a process has ended or a peer has left, within `wait_s`.

    It uses poll(2), since select(2) takes descriptors up to 1023 only, and a fleet has more.
    """
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(wait_s * 1000))
