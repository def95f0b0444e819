"""Hypothesis strategies for designs and input uncertainties."""

import random

import torch
from hypothesis import strategies as st

from airbo import uncertainty as unc


def numbers(low, high):
    return st.floats(low, high, allow_nan=False, allow_infinity=False)


@st.composite
def designs(draw, d=None, max_n=4, low=-2.0, high=2.0):
    """Draw designs (n d)."""
    d = draw(st.integers(1, 4)) if d is None else d
    n = draw(st.integers(1, max_n))
    rows = draw(
        st.lists(st.lists(numbers(low, high), min_size=d, max_size=d), min_size=n, max_size=n)
    )
    return torch.tensor(rows, dtype=torch.float64)


@st.composite
def covariances(draw, d):
    """Draw covariance matrices (d d), singular ones among them."""
    rank = draw(st.integers(1, d))
    rows = st.lists(numbers(-1, 1), min_size=rank, max_size=rank)
    A = torch.tensor(draw(st.lists(rows, min_size=d, max_size=d)), dtype=torch.float64)
    return A @ A.mT


def scalar_uncertainties():
    """Draw uncertainties that act on any number of columns, all alike."""
    widths = numbers(0, 2)
    shapes = numbers(0.1, 20)
    return st.one_of(
        st.just(unc.Exact()),
        st.builds(unc.Normal, widths),
        st.builds(lambda low, width: unc.Uniform(low, low + width), numbers(-2, 2), widths),
        st.builds(unc.Beta, shapes, shapes, numbers(-1, 1), widths),
        st.builds(unc.ChiSquared, shapes, numbers(-1, 1), widths),
    )


def quietly(make):
    """Leave the state of ``random`` as it was: beartype picks at random which items it checks."""

    def build(*args):
        state = random.getstate()
        try:
            return make(*args)
        finally:
            random.setstate(state)

    return build


def uncertainties(d):
    """Draw uncertainties of designs with ``d`` columns, products, steps and limits among them."""
    rows = st.lists(st.lists(numbers(-1, 1), min_size=d, max_size=d), min_size=1, max_size=5)
    simple = st.one_of(
        scalar_uncertainties(),
        st.builds(lambda cov: unc.Normal(cov=cov), covariances(d)),
        st.builds(unc.Empirical, rows),
        *([st.builds(unc.Ring, numbers(0, 2))] if d == 2 else []),
    )
    blocks = st.lists(scalar_uncertainties(), min_size=d, max_size=d)
    steps = quietly(lambda edge, left, right: unc.Piecewise([edge], [left, right]))
    return st.one_of(
        simple,
        st.builds(quietly(unc.Product), blocks),
        st.builds(steps, numbers(-1, 1), simple, simple),
        st.builds(lambda u, low: u.clipped(low, low + 1), simple, numbers(-1, 1)),
    )
