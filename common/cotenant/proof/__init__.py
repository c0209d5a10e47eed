"""Results that somebody else can check: one file of all that a suite left, and its checks."""
