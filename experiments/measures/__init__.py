"""Robust in the users' sense: by a measure, with limits, in spec."""
