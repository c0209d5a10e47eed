"""The live challenge: a buyer's nonces, a vendor's answers, and what they show of a rate (docs/challenge.md)."""
