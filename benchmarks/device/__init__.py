"""The parts of the acceptance run on a device, `gpu.py` beside this folder."""
