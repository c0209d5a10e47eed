"""The functions that `import cotenant` offers, which the commands call, too: runs, records, comparisons, plans."""
