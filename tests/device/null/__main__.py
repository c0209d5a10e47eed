"""Run a command on the null device: PYTHONPATH=tests python -m device.null COMMAND...

Variables describe the device, for example NULL_DEVICE_MIB=24000 NULL_DEVICE_COUNT=8: see devices.c, clock.c, shared.c
and nvml.c.
"""

import os
import sys

from device.null.build import NotBuiltError, built, variables

if len(sys.argv) < 2:
    sys.exit("Which command is to run? PYTHONPATH=tests python -m device.null COMMAND...")
try:
    environment = variables(built(), os.environ)
except NotBuiltError as reason:
    sys.exit(str(reason))
os.execvpe(sys.argv[1], sys.argv[1:], os.environ | environment)
