"""Runs any experiment, and stores, tabulates and draws its results."""
