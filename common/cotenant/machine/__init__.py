"""Describes this host: topology from sysfs, accelerators, software. Never imports torch."""
