"""Several hosts as one: which of them this is, and who starts a runner on each."""
