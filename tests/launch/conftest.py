"""A place for suites, from which nothing may be left, and what forks tenants."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from cotenant.isolation.shim import ForkServer
from tenants.fixtures import loose, v1

__all__ = ["loose", "v1"]


@pytest.fixture
def forks() -> Iterator[ForkServer]:
    with closing(ForkServer()) as opened:
        yield opened
