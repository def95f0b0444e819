"""Bounds of the theory, compared with measurements."""
