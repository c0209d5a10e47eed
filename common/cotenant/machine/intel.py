"""Intel's discrete devices through the kernel's display drivers, which Level Zero counts first."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cotenant.machine.accelerators import Accelerator, pci_node
from cotenant.procfs import fields, numbered, read_int, read_text

_DRIVERS = ("xe", "i915")
_BUILT_IN = "00:02.0"  # where every processor's own graphics lie


def intel_accelerators(root: Path, environ: Mapping[str, str]) -> tuple[Accelerator, ...]:
    """Return the discrete devices that the caller may use, by PCI id.

    `ZE_AFFINITY_MASK` is read as whole devices: an entry for a tile (`0.1`) counts as its device.
    """
    cards = [card for number in numbered(root / "sys/class/drm", "card") if (card := _card(root, number))]
    cards.sort(key=lambda card: card[0])
    found = [_accelerator(root, index, *card) for index, card in enumerate(cards)]
    mask = environ.get("ZE_AFFINITY_MASK")
    if mask is None:
        return tuple(found)
    wanted = {entry.strip().partition(".")[0] for entry in mask.split(",")}
    return tuple(device for device in found if str(device.index) in wanted)


def _card(root: Path, number: int) -> tuple[str, str, Path] | None:
    """Return the PCI id, the driver and the directory of a discrete Intel device, None for any other card."""
    card = root / f"sys/class/drm/card{number}"
    if read_text(card / "device/vendor") != "0x8086":
        return None
    event = fields(read_text(card / "device/uevent"), "=")
    pci, driver = event.get("PCI_SLOT_NAME", "").lower(), event.get("DRIVER", "")
    bus = pci.partition(":")[2]
    # A guest may see a compute card on bus 00, so a display controller without a display counts there too.
    compute = read_text(card / "device/class").startswith("0x0380") and bus != _BUILT_IN
    discrete = driver in _DRIVERS and bool(bus) and not bus.startswith("00:")
    return (pci, driver, card) if compute or discrete else None


def _accelerator(root: Path, index: int, pci: str, driver: str, card: Path) -> Accelerator:
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
