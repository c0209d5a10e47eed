"""Slices: planned by a pure function, made by one backend a file, entered by a plain process start."""
