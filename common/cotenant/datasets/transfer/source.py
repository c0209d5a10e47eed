"""Where a file may be had: which URLs are accepted, and in which order they are tried."""

from __future__ import annotations

from urllib.parse import quote, urlsplit

from cotenant.datasets.archive import Archive
from cotenant.errors import CotenantError

SCHEMES = ("http", "https", "file")


class SourceError(Exception):
    """One source did not give the file: why, whether asking again is of no use, and the seconds it asked to wait."""

    def __init__(self, reason: str, *, final: bool, wait_s: float = 0.0) -> None:
        super().__init__(reason)
        self.final = final
        self.wait_s = wait_s


def check_mirror(url: str, given_as: str) -> str:
    """Return a mirror's base URL without a slash at its end; raises CotenantError for one that cannot be used."""
    remedy = "Give a base URL such as https://mirror.example/data or file:///mnt/data."
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise CotenantError(f"{given_as} is '{url}', which is no URL: {error}.", remedy) from None
    if parts.scheme not in SCHEMES:
        raise CotenantError(f"{given_as} is '{url}': only {', '.join(SCHEMES)} can be read.", remedy)
    if parts.scheme == "file" and parts.netloc not in ("", "localhost"):
        raise CotenantError(f"{given_as} is '{url}': a file URL names no host.", remedy)
    if parts.scheme != "file" and not parts.hostname:
        raise CotenantError(f"{given_as} is '{url}', which names no host.", remedy)
    if parts.query or parts.fragment or "@" in parts.netloc:
        raise CotenantError(f"{given_as} is no plain base URL: it has a '?', a '#' or a password.", remedy)
    return url.rstrip("/")


def sources(archive: Archive, set_name: str, mirror: str | None) -> tuple[str, ...]:
    """Return the URLs of `archive` in the order of trial: the mirror's folder of the set, the mirror, the publisher."""
    if mirror is None:
        return archive.urls
    name = quote(archive.name)
    return (f"{mirror}/{quote(set_name)}/{name}", f"{mirror}/{name}", *archive.urls)
