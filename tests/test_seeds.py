"""Streams of random numbers: each depends on its key alone, and no two on each other."""

import itertools
import math

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from airbo.acquisition import RandomizedUCB
from airbo.optimizer.search import initial_points
from airbo.seeds import reproducible, stream, stream_seed
from airbo.space import Space
from airbo.space.cube import Section as Cube
from airbo.uncertainty import base_draws

N = 1000
LINE = Cube(Space({"x": (0.0, 1.0)}))


def drawn_by_the_library(seed):
    """Return what the optimizer draws over many steps: one column per purpose."""
    betas = []
    for step in range(N):
        with reproducible(seed, "ask", step):
            betas.append(RandomizedUCB().draw_beta())
    return {
        "beta": betas,
        "initial": torch.cat([*itertools.islice(initial_points(LINE, seed, 0), N)]).flatten(),
    }


def drawn_by_experiments(seed):
    """Return what a simulated experiment draws: base draws of its executed input, and noise."""
    base = (base_draws(1, 1, stream_seed(seed, "executed input", step)) for step in range(N))
    return {
        "base draws": [u.item() for u in base],
        "noise": [stream(seed, "noise", step).normal() for step in range(N)],
    }


@pytest.mark.parametrize("seed", [0, 1, 2**40])
def test_streams_are_pairwise_independent(seed):
    columns = drawn_by_the_library(seed) | drawn_by_experiments(seed)
    band = 4 / math.sqrt(N - 1)  # four standard deviations of a rank correlation
    for one, other in itertools.combinations(columns, 2):
        r = spearmanr(columns[one], columns[other]).statistic
        assert abs(r) < band, (one, other, r)


def test_steps_and_seeds_that_add_to_the_same_number_are_independent():
    a = [stream(0, "noise", 1_000_003 + i).random() for i in range(N)]
    b = [stream(1, "noise", i).random() for i in range(N)]
    assert abs(spearmanr(a, b).statistic) < 4 / math.sqrt(N - 1)


def test_a_stream_depends_on_its_key_alone():
    before = stream_seed(7, "ask", 3), stream(7, "ask", 3).random(5).tolist()
    torch.manual_seed(1)
    np.random.seed(1)
    assert (stream_seed(7, "ask", 3), stream(7, "ask", 3).random(5).tolist()) == before
    assert 0 <= before[0] < 2**63


def test_global_generators_are_as_they_were():
    torch.manual_seed(5)
    expected = torch.rand(2).tolist()
    torch.manual_seed(5)
    with reproducible(0, "ask"):
        torch.rand(9)
    assert torch.rand(2).tolist() == expected
