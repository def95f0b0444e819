"""The yardstick of the base kernel's derivatives does the same work."""

import torch

from airbo.embeddings import RationalQuadraticSum
from benchmarks.derivatives import ByAutograd, points, value_and_gradient


def test_values_and_gradients_are_the_same():
    ours, theirs = RationalQuadraticSum().double(), ByAutograd().double()
    (U, V), (U_, V_) = points(3, 4, 2, number=0), points(3, 4, 2, number=0)
    torch.testing.assert_close(ours(U, V).to_dense(), theirs(U_, V_).to_dense())
    value_and_gradient(ours, (U, V))
    value_and_gradient(theirs, (U_, V_))
    torch.testing.assert_close(U.grad, U_.grad)
