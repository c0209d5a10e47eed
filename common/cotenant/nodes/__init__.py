"""Several hosts as one: which of them this is, what their runners tell each other, and what their clocks differ by."""
