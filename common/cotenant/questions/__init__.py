"""Questions that a series of launches answers: which batch size is the fastest here."""
