"""Several hosts as one: this host's number among them, and the launcher of the runners."""
