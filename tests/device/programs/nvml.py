"""Prints the devices, states and readings that Cotenant finds on hosts, each described by variables of the null NVML.

nvml.py ROOT VARIABLES    VARIABLES is a JSON list with an object of variables for each host
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cotenant.machine.nvidia import device_states, silence
from cotenant.machine.topology import accelerators
from cotenant.meters.sources import nvidia_source


def found(root: Path) -> dict[str, Any]:
    devices = accelerators(root, {})
    places = {device.pci for device in devices}
    with nvidia_source(places, root) as source:
        readings = {} if source is None else source.read()
    return {
        "devices": [asdict(device) for device in devices],
        "states": [asdict(state) for state in device_states(places, root)],
        "readings": [asdict(reading) for reading in readings.values()],
        "silence": "" if devices else silence(root, {}),
    }


answers = []
for variables in json.loads(sys.argv[2]):
    os.environ |= variables
    # The bindings load the library once, but it reads the variables at every call.
    answers.append(found(Path(sys.argv[1])))
    for name in variables:
        del os.environ[name]
print(json.dumps(answers))
