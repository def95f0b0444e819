"""A function that is not written for tensors of designs gets a hint."""

import numpy as np
import pytest
import torch

from airbo import uncertainty as unc


@pytest.mark.parametrize(
    ("fn", "message"),
    [
        (lambda x: unc.Normal(0.1 if x < 5 else 0.2), "Piecewise instead of if"),
        (lambda x: unc.Normal(0.1 * np.abs(x.numpy())), "calculate with torch"),
    ],
    ids=["if", "numpy"],
)
def test_a_function_of_single_numbers_is_told_how_to_be_one_of_tensors(fn, message):
    X = torch.rand(3, 1, dtype=torch.float64)
    with pytest.raises(ValueError, match=message):
        unc.Varying(fn).perturb(X, torch.rand(4, 1, dtype=torch.float64))
