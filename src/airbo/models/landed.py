r"""Covariances of f with observed expected values where P_x is normal, in closed form.

For a base kernel that is a sum of Gaussians, and executed inputs :math:`\mathcal N(m_i, v_i)` with
independent columns,

.. math:: \mathbb E\, k(x, x'_i) = c_0 + \sum_q c_q \prod_c \frac{1}{\sqrt{1 + \lambda_{qc} v_{ic}}}
          \exp\Big(-\frac{\lambda_{qc} (x_c - m_{ic})^2}{2 (1 + \lambda_{qc} v_{ic})}\Big)

The exponents of all pairs are one product of matrices.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from airbo.embeddings.embedding import PORTION
from airbo.embeddings.gaussian_sum import GaussianSum
from airbo.uncertainty import InputUncertainty
from airbo.uncertainty.gaussians import Resolution

SKETCH = Resolution(2)
"""Enough to see whether P_x is one normal distribution."""


def normal_landing(
    uncertainty: InputUncertainty, Z: Float[Tensor, "*batch n d"]
) -> tuple[Float[Tensor, "*batch n d"], Float[Tensor, "*batch n d"]] | None:
    """Return means and variances of executed inputs; None unless they are normal, by column."""
    mean, variance = Z.clone(), torch.zeros_like(Z)
    for part in uncertainty.gaussians(Z, SKETCH):
        if part.n_components > 1 or part.kind == 2:
            return None
        columns = list(part.columns)
        landed = part.around(Z[..., columns])
        mean[..., columns] = landed.means.squeeze(-2)
        variance[..., columns] = landed.variances.squeeze(-2)
    return mean, variance


class NormalCovariance:
    """Maps points to their covariances with observations under normal P_x."""

    def __init__(
        self, base: GaussianSum, mean: Float[Tensor, "n d"], variance: Float[Tensor, "n d"]
    ) -> None:
        """Prepare for observations that landed like this, in the unit cube."""
        precisions = base.by_column(mean.shape[-1]).unsqueeze(1)  # (q, 1, d)
        widening = 1 + precisions * variance
        a = precisions / widening  # (q, n, d)
        height = base.weights.log().unsqueeze(-1) - 0.5 * widening.log().sum(-1)
        # -½ a (x - m)² = -½ a x² + a m x - ½ a m², so that x only enters as x² and x
        parts = [-0.5 * a, a * mean, (height - 0.5 * (a * mean.square()).sum(-1)).unsqueeze(-1)]
        self.coefficients = torch.cat(parts, dim=-1).flatten(0, 1).mT.contiguous()
        self.constant, self.n = base.constant, len(mean)

    def __call__(self, Z: Float[Tensor, "k d"]) -> Float[Tensor, "k n"]:
        """Return the covariances of points of the unit cube, so many at a time as fit in memory."""
        rows = torch.cat([Z.square(), Z, torch.ones_like(Z[:, :1])], dim=-1)
        step = max(32, PORTION // self.coefficients.shape[-1])
        each = [(some @ self.coefficients).exp() for some in rows.split(step)]
        return self.constant + torch.cat([e.unflatten(-1, (-1, self.n)).sum(-2) for e in each])
