"""Shared parts of the Transformers of tasks/: attention, positions, feed-forward layers, a key-value cache, a decoder.

Shapes stand in names: b sequences, l positions, s positions that are attended to, w the width, h heads of d units.
"""
