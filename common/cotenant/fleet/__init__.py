"""Many nodes that ran the same suite: what was gathered of them, and what it says of each."""
