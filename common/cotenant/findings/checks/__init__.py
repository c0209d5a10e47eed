"""Doctor's checks of a host, and of the jobs that are to run on it: each is a pure function of `Facts`.

They are shown in the order of these files.
"""

from __future__ import annotations

from cotenant.findings import Check, declared_in
from cotenant.findings.checks import devices, host, isolation, jobs

CHECKS = declared_in(Check, (isolation, host, devices, jobs))
"""In the order of `doctor`'s output: by group, and in the order of their files."""
EVERY_SUITE = tuple(check for check in CHECKS if check.every_suite)
"""The checks that every suite asks at its start: cheap, and about the host alone."""
