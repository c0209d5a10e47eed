"""Many nodes that ran the same suite: their records, and a verdict on each."""
