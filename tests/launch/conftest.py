"""A place for suites, from which nothing may be left."""

from tenants.fixtures import loose, shared, v1

__all__ = ["loose", "shared", "v1"]
