"""AMD's and Intel's devices as the kernel's drivers list them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cotenant.machine.accelerators import Accelerator, pci_node, visible_positions
from cotenant.machine.wheels import intel_place
from cotenant.procfs import fields, numbered, read_int, read_text, to_int

_HEAPS_OF_THE_DEVICE = (1, 2)  # HSA_HEAPTYPE_FRAME_BUFFER_PUBLIC and _PRIVATE
_ROCR, _HIP, _CUDA = "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"


def amd_accelerators(root: Path, environ: Mapping[str, str]) -> tuple[Accelerator, ...]:
    """Return the devices that the caller may use: by PCI id, or in the order of its visible-devices variables.

    Without such a variable, a processor's built-in graphics count only if there is nothing else.
    """
    nodes = _nodes(root)
    dedicated = [device for device, built_in in nodes if not built_in]
    everything = [device for device, _ in nodes]
    if not {_ROCR, _HIP, _CUDA} & environ.keys():
        return tuple(sorted(dedicated or everything, key=lambda device: device.pci))
    if _ROCR in environ:
        everything = _chosen(environ[_ROCR], everything)
    # HIP's variable counts the devices that ROCR's leaves; CUDA's stands in if it is not set.
    inner = environ.get(_HIP, environ.get(_CUDA))
    return tuple(everything if inner is None else _chosen(inner, everything))


def _chosen(value: str, devices: list[Accelerator]) -> list[Accelerator]:
    return [devices[position] for position in visible_positions(value, [device.uuid for device in devices])]


def _nodes(root: Path) -> list[tuple[Accelerator, bool]]:
    """Return each device and whether it is built into a processor, in the order in which ROCm counts them."""
    directory = root / "sys/class/kfd/kfd/topology/nodes"
    driver = read_text(root / "sys/module/amdgpu/version") or "amdgpu"
    devices: list[tuple[Accelerator, bool]] = []
    for number in numbered(directory):
        node = directory / str(number)
        # Nodes that a device rule denies us cannot be read; ROCm does not count them either.
        values = {key: to_int(value) or 0 for key, value in fields(read_text(node / "properties")).items()}
        if values.get("simd_count", 0) > 0:
            device = _amd_device(root, node, values, len(devices), driver)
            devices.append((device, values.get("cpu_cores_count", 0) > 0))
    return devices


def _amd_device(root: Path, node: Path, values: dict[str, int], index: int, driver: str) -> Accelerator:
    place = values.get("location_id", 0)
    pci = f"{values.get('domain', 0):04x}:{place >> 8 & 0xFF:02x}:{place >> 3 & 0x1F:02x}.{place & 7}"
    drm = root / f"sys/class/drm/renderD{values.get('drm_render_minor', 0)}/device"
    unique = values.get("unique_id", 0)
    return Accelerator(
        index=index,
        vendor="amd",
        name=read_text(drm / "product_name") or read_text(node / "name") or "AMD device",
        uuid=f"GPU-{unique:016x}" if unique else "",
        pci=pci,
        node=pci_node(root, pci),
        memory_bytes=_memory(node) or read_int(drm / "mem_info_vram_total") or 0,
        driver=driver,
    )


def _memory(node: Path) -> int:
    """Return the device's own memory in bytes; of a partition, its part."""
    total = 0
    for bank in numbered(node / "mem_banks"):
        values = fields(read_text(node / "mem_banks" / str(bank) / "properties"))
        if to_int(values.get("heap_type", "")) in _HEAPS_OF_THE_DEVICE:
            total += to_int(values.get("size_in_bytes", "")) or 0
    return total


def intel_accelerators(root: Path, environ: Mapping[str, str]) -> tuple[Accelerator, ...]:
    """Return the discrete devices that the caller may use, by PCI id.

    `ZE_AFFINITY_MASK` is read as whole devices: an entry for a tile (`0.1`) counts as its device.
    """
    cards = [root / f"sys/class/drm/card{number}" for number in numbered(root / "sys/class/drm", "card")]
    places = sorted((*place, card) for card in cards if (place := intel_place(card)))
    devices = [_intel_device(root, index, *place) for index, place in enumerate(places)]
    mask = environ.get("ZE_AFFINITY_MASK")
    if mask is None:
        return tuple(devices)
    wanted = {entry.strip().partition(".")[0] for entry in mask.split(",")}
    return tuple(device for device in devices if str(device.index) in wanted)


def _intel_device(root: Path, index: int, pci: str, driver: str, card: Path) -> Accelerator:
    model = read_text(card / "device/device").removeprefix("0x")
    tiles = [card / f"device/tile{tile}" for tile in numbered(card / "device", "tile")]
    tile_bytes = sum(read_int(tile / "physical_vram_size_bytes") or 0 for tile in tiles)
    return Accelerator(
        index=index,
        vendor="intel",
        name=f"Intel GPU 8086:{model}" if model else "Intel GPU",
        uuid="",
        pci=pci,
        node=pci_node(root, pci),
        memory_bytes=tile_bytes or read_int(card / "lmem_total_bytes") or 0,
        driver=driver,
    )
