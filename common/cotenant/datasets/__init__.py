"""Makers of fake data sets in their true formats, the real sets, and the manifests of both. Never imports torch."""
