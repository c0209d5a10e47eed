"""Programs that are no benchmarks of ours as tenants. Standard library only, Python 3.8 and newer."""
