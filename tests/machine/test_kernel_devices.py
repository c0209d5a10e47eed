from __future__ import annotations

from pathlib import Path

import pytest

from cotenant.machine.accelerators import Accelerator
from cotenant.machine.kernel_devices import amd_accelerators, intel_accelerators
from machine.fakehost import write

KFD = "sys/class/kfd/kfd/topology/nodes"


def kfd_node(root: Path, number: int, bus: int, unique: int = 0, cpu_cores: int = 0, simd: int = 256) -> None:
    lines = {
        "cpu_cores_count": cpu_cores,
        "simd_count": simd,
        "location_id": bus << 8,
        "domain": 0,
        "drm_render_minor": 128 + number,
        "unique_id": unique,
    }
    properties = "\n".join(f"{key} {value}" for key, value in lines.items())
    write(root, {f"{KFD}/{number}/properties": properties, f"{KFD}/{number}/name": "vega20"})


def indices(accelerators: tuple[Accelerator, ...]) -> list[int]:
    return [accelerator.index for accelerator in accelerators]


@pytest.fixture
def amd(tmp_path: Path) -> Path:
    """Two processors' nodes and three devices, which ROCm does not count by PCI id."""
    kfd_node(tmp_path, 0, 0, cpu_cores=32, simd=0)
    kfd_node(tmp_path, 1, 0, cpu_cores=32, simd=0)
    kfd_node(tmp_path, 2, 0xC3, unique=0xABC)
    kfd_node(tmp_path, 3, 0x43, unique=0xDEF)
    kfd_node(tmp_path, 10, 0x83)
    files = {
        f"{KFD}/2/mem_banks/0/properties": f"heap_type 1\nsize_in_bytes {32 << 30}\nflags 0",
        f"{KFD}/2/mem_banks/1/properties": f"heap_type 0\nsize_in_bytes {99 << 30}",
        "sys/class/drm/renderD131/device/mem_info_vram_total": 16 << 30,
        "sys/class/drm/renderD131/device/product_name": "AMD Instinct MI50",
        "sys/bus/pci/devices/0000:c3:00.0/numa_node": 1,
        "sys/module/amdgpu/version": "6.12.12",
    }
    write(tmp_path, files)
    return tmp_path


def test_amd_devices_by_pci_id(amd: Path) -> None:
    first, second, third = amd_accelerators(amd, {})
    assert first == Accelerator(
        1, "amd", "AMD Instinct MI50", "GPU-0000000000000def", "0000:43:00.0", -1, 16 << 30, "6.12.12"
    )
    assert (second.index, second.pci, second.uuid, second.memory_bytes) == (2, "0000:83:00.0", "", 0)
    assert (third.index, third.name, third.node, third.memory_bytes) == (0, "vega20", 1, 32 << 30)


def test_amd_visibility(amd: Path) -> None:
    rocr, hip, cuda = "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"
    chosen: list[tuple[dict[str, str], list[int]]] = [
        ({rocr: "2,0"}, [2, 0]),
        ({rocr: "GPU-0000000000000def"}, [1]),
        ({rocr: "2,0", hip: "1"}, [0]),
        ({hip: "1"}, [1]),
        ({hip: "-1"}, []),
        ({cuda: ""}, []),
        ({hip: "1", cuda: "0"}, [1]),
        ({rocr: ""}, []),
    ]
    for environ, expected in chosen:
        assert indices(amd_accelerators(amd, environ)) == expected, environ


def test_built_in_graphics_count_only_alone(amd: Path, tmp_path: Path) -> None:
    kfd_node(amd, 11, 0x01, cpu_cores=8)
    assert indices(amd_accelerators(amd, {})) == [1, 2, 0]
    kfd_node(tmp_path / "laptop", 0, 0x01, cpu_cores=8)
    assert indices(amd_accelerators(tmp_path / "laptop", {})) == [0]


def test_a_denied_amd_device_is_not_counted(amd: Path) -> None:
    # A directory fails to be read for root too.
    (amd / KFD / "2/properties").unlink()
    (amd / KFD / "2/properties").mkdir()
    assert indices(amd_accelerators(amd, {})) == [0, 1]


def card(root: Path, number: int, pci: str, driver: str = "xe", cls: str = "0x030000", vendor: str = "0x8086") -> None:
    device = f"sys/class/drm/card{number}/device"
    files = {
        f"{device}/vendor": vendor,
        f"{device}/class": cls,
        f"{device}/device": "0x56a0",
        f"{device}/uevent": f"DRIVER={driver}\nPCI_CLASS=30000\nPCI_SLOT_NAME={pci}",
    }
    write(root, files)


@pytest.fixture
def intel(tmp_path: Path) -> Path:
    card(tmp_path, 0, "0000:00:02.0", "i915")
    card(tmp_path, 1, "0000:b3:00.0")
    card(tmp_path, 2, "0000:03:00.0", "i915")
    card(tmp_path, 3, "0000:04:00.0", "nvidia", vendor="0x10de")
    (tmp_path / "sys/class/drm/card1-DP-1").mkdir()
    files = {
        "sys/class/drm/card2/lmem_total_bytes": 16 << 30,
        "sys/class/drm/card1/device/tile0/physical_vram_size_bytes": 24 << 30,
        "sys/class/drm/card1/device/tile1/physical_vram_size_bytes": 24 << 30,
        "sys/bus/pci/devices/0000:b3:00.0/numa_node": 1,
    }
    write(tmp_path, files)
    return tmp_path


def test_intel_devices_are_the_discrete_ones(intel: Path) -> None:
    assert intel_accelerators(intel, {}) == (
        Accelerator(0, "intel", "Intel GPU 8086:56a0", "", "0000:03:00.0", -1, 16 << 30, "i915"),
        Accelerator(1, "intel", "Intel GPU 8086:56a0", "", "0000:b3:00.0", 1, 48 << 30, "xe"),
    )


def test_intel_visibility(intel: Path) -> None:
    for mask, expected in {"1": [1], "0.1": [0], "1,0": [0, 1], "7": [], "": []}.items():
        assert indices(intel_accelerators(intel, {"ZE_AFFINITY_MASK": mask})) == expected, mask


def test_intel_display_controllers(tmp_path: Path) -> None:
    card(tmp_path, 0, "0000:00:02.0", "i915", cls="0x038000")
    card(tmp_path, 1, "0000:00:05.0", "xe", cls="0x038000")
    card(tmp_path, 2, "0000:00:06.0", "xe")
    card(tmp_path, 3, "0000:09:00.0", "vfio-pci")
    assert [device.pci for device in intel_accelerators(tmp_path, {})] == ["0000:00:05.0"]
