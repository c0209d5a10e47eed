"""The record's schema, its store, and the summary."""
