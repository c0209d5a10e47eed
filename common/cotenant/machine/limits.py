"""Our own cgroup, on v1, v2 and hybrid hosts, and the limits above us."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cotenant.procfs import Mount, fields, mounted_systems, read_int, read_text, to_int

V2 = ""
"""The key of the v2 hierarchy, as `/proc/self/cgroup` leaves its controllers empty."""


@dataclass(frozen=True, slots=True)
class Mounts:
    """The mounted cgroup hierarchies. A v1 controller may also be a named hierarchy, `name=systemd`."""

    v1: dict[str, Path]
    """The mount point of each v1 controller; controllers mounted together share one."""
    v2: Path | None
    own: dict[str, Path]
    """Our own cgroup's directory by controller (`V2` for v2); absent if the mount does not show it."""
    chains: dict[str, tuple[Path, ...]]
    """Our own directory and its visible ancestors, by controller, the mount point last."""

    def chain(self, controller: str = V2) -> tuple[Path, ...]:
        """Return the directories with limits on us: our own first, then its visible ancestors."""
        return self.chains.get(controller, ())


def own_cgroups(root: Path = Path("/"), pid: int | str = "self") -> dict[str, str]:
    """Return a process's own cgroup by controller, from `/proc/PID/cgroup`, `V2` being the v2 hierarchy."""
    paths: dict[str, str] = {}
    for line in read_text(root / f"proc/{pid}/cgroup").splitlines():
        number, _, rest = line.partition(":")
        controllers, colon, path = rest.partition(":")
        if not colon:
            continue
        # A v1 hierarchy without controllers or name does not exist, so an empty list is v2's line.
        for controller in controllers.split(",") if number != "0" else [V2]:
            paths[controller] = path
    return paths


def cgroup_mounts(root: Path = Path("/")) -> Mounts:
    """Return the cgroup hierarchies mounted below `root` and our own place in each."""
    visible = _visible(root)
    points: dict[str, Path] = {}
    cgroups: dict[str, Path] = {}
    chains: dict[str, tuple[Path, ...]] = {}
    for controller, path in own_cgroups(root).items():
        candidates = [m for m in visible if (m.kind == "cgroup2" if controller == V2 else controller in m.options)]
        if not candidates:
            continue
        parts = _parts(path)
        # Of several mounts of one hierarchy, take the one that shows us, and most of the cgroups above us.
        best = min(candidates, key=lambda m: (_below(_parts(m.shown), parts) is None, len(_parts(m.shown))))
        points[controller] = best.point
        shown = _parts(best.shown)
        below = _below(shown, parts)
        if below is not None:
            cgroups[controller] = place = best.point.joinpath(*below)
            upward = [place, *place.parents]
            chains[controller] = tuple(upward[: upward.index(best.point) + 1])
        elif all(part == ".." for part in shown) and ".." not in parts:
            # It shows an ancestor of our namespace's root, below which our path has no known name.
            chains[controller] = (best.point,)
    v2 = points.pop(V2, None)
    return Mounts(v1=points, v2=v2, own=cgroups, chains=chains)


def memory_limit(mounts: Mounts) -> int | None:
    """Return the smallest memory limit of our own cgroup and the ones above it in bytes, None without one."""
    limits = [limit for _, limit, _, _ in _memory_levels(mounts)]
    # On v1 the kernel also names the limits above the cgroups that a container is shown.
    limits += [_counted(directory).get("hierarchical_memory_limit") for directory in mounts.chain("memory")[:1]]
    # 0 would be a cgroup in which nothing can run, so it is ignored.
    return min((limit for limit in limits if limit), default=None)


def memory_left(mounts: Mounts) -> int | None:
    """Return the bytes that the limits above us leave free, their page cache counted as free; None without a limit."""
    rooms = []
    for directory, limit, usage, prefix in _memory_levels(mounts):
        used = read_int(directory / usage)
        if limit and used is not None:
            counted = _counted(directory)
            cache = sum(counted.get(f"{prefix}{name}") or 0 for name in ("active_file", "inactive_file"))
            rooms.append(max(0, limit - used + cache))
    return min(rooms, default=None)


def _memory_levels(mounts: Mounts) -> Iterator[tuple[Path, int | None, str, str]]:
    """Yield our directory and each above it: the path, a limit, the file of the bytes in use, its sums' prefix."""
    for above, directory in enumerate(mounts.chain("memory")):
        # v1 charges a cgroup's memory to the ones above it only as far as each of them asks for that.
        if above and read_int(directory / "memory.use_hierarchy") == 0:
            break
        yield directory, read_int(directory / "memory.limit_in_bytes"), "memory.usage_in_bytes", "total_"
    for directory in mounts.chain(V2):
        for name in ("memory.max", "memory.high"):
            yield directory, read_int(directory / name), "memory.current", ""


def quota_processors(mounts: Mounts) -> float | None:
    """Return the smallest processor-time quota above us, in processors, None without one."""
    pairs = [
        (read_int(directory / "cpu.cfs_quota_us"), read_int(directory / "cpu.cfs_period_us"))
        for directory in mounts.chain("cpu")
    ]
    for directory in mounts.chain(V2):
        quota, _, period = read_text(directory / "cpu.max").partition(" ")
        pairs.append((to_int(quota), to_int(period)))
    quotas = (quota / period for quota, period in pairs if quota and period and quota > 0)
    return min(quotas, default=None)


def _counted(directory: Path) -> dict[str, int | None]:
    """Return the numbers of a memory cgroup's `memory.stat`."""
    return {name: to_int(value) for name, value in fields(read_text(directory / "memory.stat")).items()}


def _visible(root: Path) -> list[Mount]:
    """Return the cgroup mounts; of several at one point the last, which hides the others."""
    last: dict[Path, Mount] = {}
    for mount in mounted_systems(root):
        last.pop(mount.point, None)
        last[mount.point] = mount
    return [mount for mount in last.values() if mount.kind in ("cgroup", "cgroup2")]


def _parts(path: str) -> tuple[str, ...]:
    return tuple(part for part in path.split("/") if part)


def _below(shown: tuple[str, ...], parts: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the path of `parts` below the cgroup shown at a mount point, None if it is not below.

    Both are relative to our cgroup namespace, so either may begin with `..`.
    """
    rest = parts[len(shown) :]
    return rest if parts[: len(shown)] == shown and ".." not in rest else None
