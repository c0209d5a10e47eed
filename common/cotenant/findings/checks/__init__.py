"""Doctor's checks of a host, and of what is to run on it: each is a pure function of `Facts`.

They are shown in the order of these files.
"""

from __future__ import annotations

from cotenant.findings import CHECKS

from cotenant.findings.checks import isolation, host, devices, jobs  # noqa: F401  # isort: skip

EVERY_SUITE = tuple(check for check in CHECKS if check.every_suite)
"""The checks that every suite asks at its start: cheap, and about the host alone."""
