"""Runs experiments, keeps their results, tabulates and draws them; knows none of them."""
