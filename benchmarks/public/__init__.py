"""Public implementations of tasks' networks, each with the constructor and the `forward` of the task's own network.

Only `run.py public_models` needs their packages.
"""
