"""Results that others can check: one file of a suite's records, logs and journal, and its checks."""
