from __future__ import annotations

from pathlib import Path

from cotenant.machine.limits import V2, Mounts, cgroup_mounts, memory_left, memory_limit, own_cgroups, quota_processors
from machine.fakehost import mount, write

CG = "sys/fs/cgroup"
UNLIMITED_V1 = 9223372036854771712


def host(root: Path, cgroup: str, *mounts: str) -> Path:
    return write(root, {"proc/self/cgroup": cgroup, "proc/self/mountinfo": "\n".join(mounts)})


def test_v1_with_controllers_mounted_together(tmp_path: Path) -> None:
    host(
        tmp_path,
        "5:memory:/user/a\n4:cpu,cpuacct:/user\n1:name=systemd:/",
        mount("/sys/fs/cgroup", "tmpfs", "mode=755"),
        mount("/sys/fs/cgroup/memory", "cgroup", "memory"),
        mount("/sys/fs/cgroup/cpu,cpuacct", "cgroup", "cpu,cpuacct"),
        mount("/sys/fs/cgroup/systemd", "cgroup", "xattr,name=systemd"),
    )
    mounts = cgroup_mounts(tmp_path)
    together = tmp_path / CG / "cpu,cpuacct"
    assert mounts.v1 == {
        "memory": tmp_path / CG / "memory",
        "cpu": together,
        "cpuacct": together,
        "name=systemd": tmp_path / CG / "systemd",
    }
    assert mounts.v2 is None
    assert mounts.own == {
        "memory": tmp_path / CG / "memory/user/a",
        **dict.fromkeys(("cpu", "cpuacct"), together / "user"),
        "name=systemd": tmp_path / CG / "systemd",
    }
    assert own_cgroups(tmp_path) == {"memory": "/user/a", "cpu": "/user", "cpuacct": "/user", "name=systemd": "/"}
    assert mounts.chain("cpu") == (together / "user", together)


def test_v1_limits_are_the_smallest_on_the_way_up(tmp_path: Path) -> None:
    host(
        tmp_path,
        "5:memory:/user/a\n4:cpu,cpuacct:/user/a",
        mount("/sys/fs/cgroup/memory", "cgroup", "memory"),
        mount("/sys/fs/cgroup/cpu", "cgroup", "cpu,cpuacct"),
    )
    files = {
        f"{CG}/memory/memory.limit_in_bytes": UNLIMITED_V1,
        f"{CG}/memory/user/memory.limit_in_bytes": 4096 * 1000,
        f"{CG}/memory/user/a/memory.limit_in_bytes": 4096 * 2000,
        f"{CG}/memory/user/a/below/memory.limit_in_bytes": 4096,
        f"{CG}/cpu/user/cpu.cfs_quota_us": 250000,
        f"{CG}/cpu/user/cpu.cfs_period_us": 100000,
        f"{CG}/cpu/user/a/cpu.cfs_quota_us": -1,
        f"{CG}/cpu/user/a/cpu.cfs_period_us": 100000,
    }
    write(tmp_path, files)
    mounts = cgroup_mounts(tmp_path)
    assert (memory_limit(mounts), quota_processors(mounts)) == (4096 * 1000, 2.5)


def test_a_v1_limit_holds_below_it_only_with_a_hierarchy(tmp_path: Path) -> None:
    host(tmp_path, "5:memory:/user/a", mount("/sys/fs/cgroup/memory", "cgroup", "memory"))
    files = {"user/memory.limit_in_bytes": 4096, "user/a/memory.limit_in_bytes": 8192, "user/a/memory.use_hierarchy": 0}
    for inherits, limit in [(1, 4096), (0, 8192)]:
        write(tmp_path / CG / "memory", {**files, "user/memory.use_hierarchy": inherits})
        assert memory_limit(cgroup_mounts(tmp_path)) == limit


def test_a_v1_limit_above_what_a_container_is_shown(tmp_path: Path) -> None:
    host(tmp_path, "5:memory:/docker/abc", mount("/sys/fs/cgroup/memory", "cgroup", "memory", "/docker/abc"))
    shown = tmp_path / CG / "memory"
    write(shown, {"memory.limit_in_bytes": UNLIMITED_V1, "memory.stat": f"hierarchical_memory_limit {UNLIMITED_V1}"})
    assert memory_limit(cgroup_mounts(tmp_path)) == UNLIMITED_V1
    write(shown, {"memory.stat": f"cache 0\nhierarchical_memory_limit {2 << 30}\nhierarchical_memsw_limit 7"})
    assert memory_limit(cgroup_mounts(tmp_path)) == 2 << 30
    write(shown, {"memory.limit_in_bytes": 1 << 30})
    assert memory_limit(cgroup_mounts(tmp_path)) == 1 << 30


def test_v2_limits(tmp_path: Path) -> None:
    host(tmp_path, "0::/user.slice/u.scope", mount("/sys/fs/cgroup", "cgroup2", "nsdelegate"))
    own = tmp_path / CG / "user.slice/u.scope"
    mounts = cgroup_mounts(tmp_path)
    assert mounts == Mounts({}, tmp_path / CG, {V2: own}, {V2: (own, own.parent, tmp_path / CG)})
    assert (memory_limit(mounts), quota_processors(mounts)) == (None, None)
    write(own, {"memory.max": "max", "memory.high": 1 << 32, "cpu.max": "max 100000"})
    write(own.parent, {"memory.max": 1 << 33, "cpu.max": "1000000 100000"})
    assert (memory_limit(mounts), quota_processors(mounts)) == (1 << 32, 10.0)


def test_hybrid_host_reads_both(tmp_path: Path) -> None:
    host(
        tmp_path,
        "4:memory:/a\n0::/b",
        mount("/sys/fs/cgroup/memory", "cgroup", "memory"),
        mount("/sys/fs/cgroup/unified", "cgroup2", "nsdelegate"),
    )
    write(tmp_path, {f"{CG}/memory/a/memory.limit_in_bytes": 2 << 30, f"{CG}/unified/b/cpu.max": "50000 100000"})
    mounts = cgroup_mounts(tmp_path)
    assert mounts.own == {"memory": tmp_path / CG / "memory/a", V2: tmp_path / CG / "unified/b"}
    assert (memory_limit(mounts), quota_processors(mounts)) == (2 << 30, 0.5)


def test_what_v1_limits_leave_free(tmp_path: Path) -> None:
    host(tmp_path, "5:memory:/user/a", mount("/sys/fs/cgroup/memory", "cgroup", "memory"))
    own = tmp_path / CG / "memory/user/a"
    write(own.parent.parent, {"memory.limit_in_bytes": UNLIMITED_V1, "memory.usage_in_bytes": 9 << 30})
    write(own.parent, {"memory.limit_in_bytes": 8 << 30, "memory.usage_in_bytes": 5 << 30})
    write(own.parent, {"memory.stat": f"active_file 7\ntotal_active_file {1 << 30}\ntotal_inactive_file {1 << 30}"})
    write(own, {"memory.limit_in_bytes": 16 << 30, "memory.usage_in_bytes": 1 << 30})
    assert memory_left(cgroup_mounts(tmp_path)) == 5 << 30


def test_what_v2_limits_leave_free(tmp_path: Path) -> None:
    host(tmp_path, "0::/a", mount("/sys/fs/cgroup", "cgroup2", "x"))
    own = tmp_path / CG / "a"
    write(own, {"memory.max": "max", "memory.current": 1 << 30})
    assert memory_left(cgroup_mounts(tmp_path)) is None
    write(own, {"memory.high": 4 << 30, "memory.stat": f"anon 1\nfile 9\ninactive_file {1 << 20}"})
    assert memory_left(cgroup_mounts(tmp_path)) == (3 << 30) + (1 << 20)
    write(own, {"memory.max": 1 << 20})
    assert memory_left(cgroup_mounts(tmp_path)) == 0


def test_a_path_is_joined_below_the_mounts_root(tmp_path: Path) -> None:
    for shown, path, below in [
        ("/", "/", ""),
        ("/", "/docker/abc", "docker/abc"),
        ("/docker/abc", "/docker/abc", ""),
        ("/docker/abc", "/docker/abc/deep/er", "deep/er"),
        ("/docker/abc", "/docker/abcd", None),
        ("/docker/abc", "/", None),
        ("/..", "/../other", "other"),
        ("/..", "/", None),
        ("/", "/../other", None),
    ]:
        host(tmp_path, f"0::{path}", mount("/sys/fs/cgroup", "cgroup2", "x", shown))
        own = cgroup_mounts(tmp_path).own.get(V2)
        assert own == (None if below is None else tmp_path / CG / below), (shown, path)


def test_a_mount_above_our_namespace_still_limits_memory(tmp_path: Path) -> None:
    write(tmp_path, {f"{CG}/memory.max": 1 << 30})
    host(tmp_path, "0::/", mount("/sys/fs/cgroup", "cgroup2", "x", "/../.."))
    assert memory_limit(cgroup_mounts(tmp_path)) == 1 << 30
    host(tmp_path, "0::/mine", mount("/sys/fs/cgroup", "cgroup2", "x", "/theirs"))
    mounts = cgroup_mounts(tmp_path)
    assert (mounts.v2, mounts.chain(), memory_limit(mounts)) == (tmp_path / CG, (), None)


def test_the_mount_that_shows_most_is_used_and_no_hidden_one(tmp_path: Path) -> None:
    points = {"/elsewhere": "/theirs", "/part": "/a", "/with\\040space": "/"}
    host(tmp_path, "0::/a/b", *(mount(point, "cgroup2", "x", shown) for point, shown in points.items()))
    assert cgroup_mounts(tmp_path).own.get(V2) == tmp_path / "with space/a/b"
    host(tmp_path, "0::/", *(mount("/sys/fs/cgroup", kind, "x") for kind in ("cgroup2", "tmpfs")))
    assert cgroup_mounts(tmp_path).v2 is None


def test_a_host_without_cgroups_or_with_strange_files(tmp_path: Path) -> None:
    mounts = cgroup_mounts(tmp_path)
    assert (mounts.v1, mounts.v2, memory_limit(mounts), quota_processors(mounts)) == ({}, None, None, None)
    host(tmp_path, "nonsense\n0::/", "too short", mount("/c", "cgroup2", "x"))
    write(tmp_path, {"c/cpu.max": "what", "c/memory.max": "ever"})
    mounts = cgroup_mounts(tmp_path)
    assert mounts.v2 == tmp_path / "c"
    assert (memory_limit(mounts), quota_processors(mounts)) == (None, None)
