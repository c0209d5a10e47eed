"""Public implementations of networks that tasks have, each as a module with the constructor and forward of the task's.

Their packages are of no use to a benchmark, and asked for here alone.
"""
