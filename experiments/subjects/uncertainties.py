"""The uncertainties of the paper in one dimension, by name."""

import math

import torch
from torch import Tensor

from airbo import uncertainty as unc


def wavy(x: Tensor) -> Tensor:
    return torch.sin(4 * math.pi * x) + 1


PAPERS: dict[str, unc.InputUncertainty] = {
    "normal": unc.Normal(0.01),
    "beta": unc.Beta(0.4, 0.2, scale=0.1),
    "varying beta": unc.Varying(lambda x: unc.Beta(0.5, 0.5, scale=0.09 * wavy(x))),
    # the width in the text of the paper: it leaves the range of designs
    "wide varying beta": unc.Varying(lambda x: unc.Beta(0.5, 0.5, scale=0.9 * wavy(x))),
    "step chi²": unc.Piecewise(
        [0.6], [unc.ChiSquared(0.5, scale=0.01), unc.ChiSquared(7.0, scale=0.01)]
    ),
}
