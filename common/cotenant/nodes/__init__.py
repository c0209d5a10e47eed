"""Several hosts as one: which of them this is, the messages between their runners, and the offsets of their clocks."""
