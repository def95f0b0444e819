"""The paper's evaluation: every figure and table with one command each."""
