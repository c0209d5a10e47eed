"""Makers of fake data sets in their true formats, and their manifests. Never imports torch."""
