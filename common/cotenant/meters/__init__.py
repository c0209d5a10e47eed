"""Host-side sampling in the runner while tenants are timed: foreign load, devices, memory, energy."""
