"""Limits on device memory by cgroup v2's controller, on a tree that behaves as the kernel's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cotenant.errors import CotenantError
from cotenant.isolation.backend import NotIsolatedError
from cotenant.isolation.device_modes import DeviceShare, share_mode
from cotenant.isolation.unenforced import Affinity
from cotenant.launch.device_sharing import check_share
from isolation import fakev2
from isolation.entering import slice_of
from isolation.fakev2 import FakeV2
from machine.invented import device

BOARD = device(0)
REGION, LIMIT = f"drm/{BOARD.pci}/vram0", 3 << 30
SLICE = replace(slice_of(0, [0]), accelerators=(BOARD,), device_share=DeviceShare(share_mode("dmem"), 4, 0.25, LIMIT))


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeV2:
    monkeypatch.setattr(fakev2, "OFFERED", (*fakev2.OFFERED, "dmem"))
    monkeypatch.setitem(fakev2.FILES, "dmem", {"dmem.max": f"{REGION} max\ndrm/0000:99:00.0/stolen max"})
    made = FakeV2(tmp_path, monkeypatch)
    made.put(made.mount / "dmem.capacity", f"drm/0000:99:00.0/stolen 67108864\n{REGION} {16 << 30}")
    return made


def test_a_slice_holds_its_part_of_device_memory_and_reads_it_back(kernel: FakeV2) -> None:
    backend = kernel.opened()
    live = backend.create(SLICE)
    assert (kernel.at() / "dmem.max").read_text().strip() == f"{REGION} {LIMIT}"
    assert live.verify().device_memory == f"{REGION} {LIMIT}"
    kernel.put(kernel.at() / "dmem.max", f"drm/0000:99:00.0/stolen max\n{REGION} {LIMIT // 2}")
    with pytest.raises(NotIsolatedError, match=f"planned with device memory {REGION} {LIMIT}, but .* {LIMIT // 2}"):
        live.verify()
    assert live.changes([])[0].endswith(f"{REGION} {LIMIT // 2} now")
    other = backend.create(replace(SLICE, tenant=1, device_share=DeviceShare(share_mode("time"), 4, 0.25, LIMIT)))
    assert (kernel.at(tenant=1) / "dmem.max").read_text().startswith(f"{REGION} max")
    assert other.verify().device_memory is None
    backend.close()
    assert kernel.directories() == []


def test_where_the_kernel_does_not_hold_it_the_mode_is_refused(kernel: FakeV2) -> None:
    check_share(share_mode("dmem"), [BOARD], kernel.backend())
    refused = [(kernel.backend(), [BOARD, device(1)]), (Affinity(), [BOARD])]
    kernel.hand_down(kernel.own.parent, ("cpuset", "memory"))
    refused.append((kernel.backend(), [BOARD]))
    for backend, devices in refused:
        with pytest.raises(CotenantError, match="--share dmem needs the kernel's controller of device memory"):
            check_share(share_mode("dmem"), devices, backend)
