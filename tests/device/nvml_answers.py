"""Print what Cotenant makes of each host that the standard input describes by the null NVML's variables.

One process for all of them: the real bindings load the library once, and it looks at the variables at every call.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

from cotenant.machine.nvidia import device_states
from cotenant.machine.topology import accelerators
from cotenant.meters.sources import nvidia_source

root = Path(sys.argv[1])
for variables in json.load(sys.stdin):
    os.environ.update(variables)
    devices = accelerators(root, {})
    places = {device.pci for device in devices}
    states = device_states(places, root)
    with nvidia_source(places, root) as source:
        readings = {} if source is None else source.read()
    found = {
        "devices": [asdict(device) for device in devices],
        "states": [asdict(state) for state in states],
        "readings": [asdict(reading) for reading in readings.values()],
    }
    print(json.dumps(found))
    for name in variables:
        del os.environ[name]
