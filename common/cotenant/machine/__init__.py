"""What this host is: topology from sysfs, accelerators, software. Never imports torch."""
