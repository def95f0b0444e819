"""The test run itself: shapes in signatures are checked."""

import jaxtyping
import pytest
import torch

from airbo import uncertainty as unc


def test_a_wrong_shape_is_an_error_while_tests_run():
    P, X = unc.Normal(0.1), torch.zeros(2, 3, dtype=torch.float64)
    P.perturb(X, unc.base_draws(4, 3, seed=0))
    with pytest.raises(jaxtyping.TypeCheckError, match="perturb"):
        P.perturb(X, unc.base_draws(4, 3, seed=0)[0])
