"""What goes with a design: shares, limits, the environment; and parts of the default."""
