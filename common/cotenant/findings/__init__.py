"""Typed statements about a record's validity, each with its remedy."""
