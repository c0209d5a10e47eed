"""The device that a tenant ran on: the device that it reports, if its slice can have it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from cotenant.finding import Finding
from cotenant.results.record import Attested
from cotenant.results.told import TenantPart
from cotenant.text import listed

VENDOR_WORDS = {"nvidia", "amd", "intel", "r", "corporation", "tm"}
MAKERS = {"amd": {"amd", "radeon", "instinct"}, "intel": {"intel"}}
"""Words in torch's names of devices that the kernel names otherwise: `ip discovery`, `Intel GPU 8086:0bd5`."""


def trained(facts: Attested, part: TenantPart) -> tuple[str, int]:
    """Return the training's `vcd` and `devices`: the first devices of the slice, one for each rank or replica."""
    ranks, replicas = part.observed.get("world_size"), part.observed.get("replicas", 1)
    if part.observed.get("device", "cpu") == "cpu" or not isinstance(ranks, int) or not isinstance(replicas, int):
        return facts.vcd, facts.devices
    used = max(1, ranks, replicas)
    return (",".join(facts.vcd.split(",")[:used]), used) if used < facts.devices else (facts.vcd, facts.devices)


def gpu_of(facts: Attested, part: TenantPart) -> tuple[str, list[Finding]]:
    """Return the name of a tenant's device, by default its slice's accelerator, else the host's processor.

    A tenant that reports a device outside its slice gets a finding. A benchmark alone has no slice.
    """
    planned, processor = facts.isolation.planned.get("accelerators"), str(facts.machine.get("model_name", ""))
    if planned is None:
        return part.gpu or processor, []
    devices = [device for device in facts.machine.get("accelerators", []) if device["uuid"] in planned]
    owned = [str(device["name"]) for device in devices]
    if part.gpu and not any(_may_be(part.gpu, device) for device in devices):
        finding = Finding(
            "foreign_device",
            "error",
            f"It says that it ran on {part.gpu}, and its slice has {listed(owned) or 'no device'}.",
            "Leave `gpu` out of what a program says where it ran on the processor; --cuda of ours asks for a device.",
        )
        return owned[0] if owned else processor, [finding]
    on_device = owned and part.observed.get("device") != "cpu"
    return part.gpu or (owned[0] if on_device else processor), []


def _may_be(said: str, device: Mapping[str, Any]) -> bool:
    """Return whether torch and the driver may mean one device: only vendor words or an instance's size may differ.

    If the kernel's driver has no product name, only the maker can be compared.
    """
    words, driver_words = ({*re.split(r"[\W_]+", name.casefold())} - {""} for name in (said, str(device["name"])))
    models = words - VENDOR_WORDS, driver_words - VENDOR_WORDS
    if models[0] <= models[1] or models[1] <= models[0]:
        return True
    makers = MAKERS.get(device.get("vendor", ""), set())
    if not makers & words:
        return False
    products = makers - VENDOR_WORDS
    # AMD's own words for a board: torch's MI250X/MI250 is an `INSTINCT MI250 (MCM) OAM AC MBA`.
    numbers = {word for word in models[0] & models[1] if any(map(str.isdigit, word))}
    return bool(numbers) or not products & driver_words
