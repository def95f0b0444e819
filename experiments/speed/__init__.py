"""Speed, memory and accuracy of the surrogates, as ratios and errors measured in one run."""
