"""Programs that are no benchmarks of ours as tenants. Standard library only; inside a program Python 3.8 and newer."""
