"""Public implementations of tasks' networks, each with the constructor and the `forward` of the task's own network."""
