"""Places for suites, from which nothing may be left."""

from tenants.fixtures import loose, v1

__all__ = ["loose", "v1"]
