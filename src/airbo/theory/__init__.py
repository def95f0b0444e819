"""The quantities of the paper's analysis, as functions; docs/theory.md explains them."""

from airbo.theory.gain import (
    information_gain,
    information_gain_bound,
    information_gains,
    max_information_gain,
    model_information_gain,
    rkhs_norm,
    ucb_beta,
)

__all__ = [
    "information_gain",
    "information_gain_bound",
    "information_gains",
    "max_information_gain",
    "model_information_gain",
    "rkhs_norm",
    "ucb_beta",
]
