"""A place for suites, from which nothing may be left, and what launches in this process are given."""

from collections.abc import Iterator

import pytest

from cotenant.launch.events import Interruption
from tenants.fixtures import loose, shared, v1

__all__ = ["loose", "shared", "v1"]


@pytest.fixture
def interruption() -> Iterator[Interruption]:
    with Interruption() as entered:
        yield entered
