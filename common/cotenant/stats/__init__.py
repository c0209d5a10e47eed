"""Numbers in, numbers out. Pure."""
