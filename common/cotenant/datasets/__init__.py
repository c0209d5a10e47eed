"""The data sets that benchmarks read: fake ones made in their true formats, real ones fetched. Never imports torch."""
