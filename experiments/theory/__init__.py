"""Bounds of the theory beside what was measured."""
