"""A place for suites, which must leave nothing behind."""

from tenants.fixtures import loose, v1

__all__ = ["loose", "v1"]
