"""The live challenge: a buyer's nonces, a vendor's answers, and their lower bound of a rate (docs/challenge.md)."""
