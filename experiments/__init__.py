"""Measured evidence: the programs behind every number and picture in README and docs."""
