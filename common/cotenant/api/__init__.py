"""The functions that `import cotenant` offers, and that commands call: runs, records, comparisons, plans."""
