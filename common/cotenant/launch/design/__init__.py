"""Designs of launches by blocks: the tenants that run beside each other, their order, and the results of that."""
