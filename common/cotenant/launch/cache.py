"""The page-cache policy: what of their input all tenants of a launch find in memory, the same for each.

A page is charged to whoever touches it first: of two tenants that read one data set, one pays for both. The policy
cannot share that bill, but it makes it the same one in every launch, and records it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Literal, get_args

from cotenant.errors import CotenantError
from cotenant.launch.places import Places
from cotenant.machine.page_cache import Cached, drop, treat, warm

CachePolicy = Literal["none", "nocache", "drop", "warm"]
CACHE_POLICIES: tuple[CachePolicy, ...] = get_args(CachePolicy)
_ACTIONS: dict[CachePolicy, Callable[[int], None]] = {"drop": drop, "warm": warm}


def input_paths(commands: Iterable[Sequence[str]], places: Places) -> tuple[Path, ...]:
    """Return what the tenants of a launch read: every path among their arguments that exists and is not an output.

    It may stand behind a `=`; a relative one is relative to where tenants start, which is where we are.
    """
    words = {part for command in commands for word in command[1:] for part in (word, word.partition("=")[2]) if part}
    ours = (places.output, places.temporary, places.meeting)
    paths = {Path(word).absolute() for word in words}
    return tuple(sorted(path for path in paths if _exists(path) and not any(path.is_relative_to(own) for own in ours)))


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # A word too long to name a file.
        return False


def prepare_cache(policy: CachePolicy, paths: Sequence[Path], stop: Callable[[], bool]) -> Cached | None:
    """Bring the inputs of a launch into the state that the policy asks for; None where it asks for none."""
    action = _ACTIONS.get(policy)
    return None if action is None else treat(paths, action, stop)


def nocache_prefix(policy: CachePolicy, image: str | None = None) -> list[str]:
    """Return what stands before a tenant's command under `nocache`: the program of that name.

    It asks the kernel to forget what was read through a file descriptor; mapped files stay. It is a library loaded
    before the others, which the `image` of a container does not have. Raises CotenantError.
    """
    if policy != "nocache":
        return []
    if image is not None:
        raise CotenantError(
            "--cache nocache has no effect on a command inside the image of --singularity.",
            "Use --cache drop, which empties the cache of a launch's inputs before it.",
        )
    program = shutil.which("nocache")
    if program is None:
        raise CotenantError(
            "--cache nocache needs the program nocache, which is not on PATH.",
            "apt-get install nocache, or use --cache drop, which empties the cache of a launch's inputs before it.",
        )
    return [program]
