"""Pictures of the README and the docs; those of experiments are drawn by the experiments."""
