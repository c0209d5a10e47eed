"""Suites of these tests on real cgroups."""

from tenants.fixtures import v1

__all__ = ["v1"]
