"""The limit of everything that a test waits for only so that a hang ends: generous, since hosts are shared."""

HANG_S = 600.0
