"""How the default surrogate was chosen: predictions, regrets, targets."""
