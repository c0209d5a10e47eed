"""Designs of launches by blocks: which tenants run beside each other, in which order, and what that shows."""
