"""What a base may be called."""

from __future__ import annotations

from cotenant.errors import CotenantError
from cotenant.isolation.backend import OURS, owner


def default_base() -> str:
    """Return the parent of this user's runs, as a path below a hierarchy's root."""
    return f"{OURS}.{owner()}"


def checked_base(base: str) -> str:
    """Return a base that was named. Raises CotenantError where it is no path of a cgroup."""
    if all(part not in ("", ".", "..") and part.isprintable() for part in base.split("/")):
        return base
    raise CotenantError(
        f"--cgroup-base '{base}' is no path of a cgroup below the root of its hierarchy.",
        f"Name one without a leading slash, such as {default_base()}.",
    )
