r"""A base kernel as a sum of Gaussians of different widths.

.. math:: k(x, x') = c_0 + \sum_q c_q \exp\Big(-\tfrac12 \lambda_q
          \sum_c \rho_c (x_c - x'_c)^2\Big), \qquad \rho_c = 1 / \ell_c^2

An expected value of a Gaussian is a Gaussian integral, so this form is what embeddings work with.
"""

from dataclasses import dataclass

from gpytorch.kernels import Kernel, MaternKernel, RBFKernel
from jaxtyping import Float
from torch import Tensor

MATERN_TOLERANCE = 2e-5
"""How far the Gaussians that stand for a Matérn kernel are from it, where its value at 0 is 1."""

# A Matérn kernel is a Gamma mixture of Gaussians. The trapezoidal rule for it, in the logarithm of
# the width, needs about 60 Gaussians; these fewer ones are its projection on a Krylov space of the
# precisions, which keeps all weights positive. (weight, precision) for length scale 1.
# fmt: off
_MATERN: dict[float, tuple[tuple[float, float], ...]] = {
    1.5: (
        (1.66262e-06, 0.0913418), (7.47868e-05, 0.123299), (0.00111627, 0.166436),
        (0.00735881, 0.224665), (0.0264828, 0.303271), (0.0608937, 0.40941), (0.100666, 0.552906),
        (0.131095, 0.747937), (0.144564, 1.01734), (0.141508, 1.40193), (0.124784, 1.97569),
        (0.0989167, 2.87089), (0.0704307, 4.33268), (0.0451305, 6.85262), (0.0259863, 11.5296),
        (0.0132635, 21.2336), (0.00573381, 45.5529), (0.00180547, 134.894), (0.000188851, 1217.4),
    ),
    2.5: (
        (0.000443259, 0.189744), (0.0191235, 0.30553), (0.144619, 0.499109), (0.346103, 0.861271),
        (0.32901, 1.62569), (0.136025, 3.52284), (0.0235824, 9.63118), (0.00109416, 45.0334),
    ),
}
# fmt: on


@dataclass(frozen=True)
class GaussianSum:
    """Constant, weights and widths of a sum of Gaussians; the equation is above.

    Hyper-parameters that all columns share may be in the weights; those of single columns are in
    the relevances.
    """

    constant: Float[Tensor, ""]
    """c₀"""
    weights: Float[Tensor, " q"]
    """c_q"""
    precisions: Float[Tensor, " q"]
    """λ_q"""
    relevances: Float[Tensor, " d"]
    """ρ_c, one per column of the unit cube, or one for all."""

    @property
    def at_zero(self) -> Float[Tensor, ""]:
        """The value at distance 0."""
        return self.constant + self.weights.sum()

    @property
    def moves(self) -> bool:
        """Whether a fit changes the widths of the Gaussians, and not only their weights."""
        return self.precisions.requires_grad or self.relevances.requires_grad

    def by_column(self, d: int) -> Float[Tensor, "q d"]:
        """Return λ_qc = λ_q ρ_c, the precision of every Gaussian in every column."""
        return self.precisions.unsqueeze(-1) * self.relevances.expand(d)

    def detached(self) -> "GaussianSum":
        """Take the hyper-parameters for constants."""
        fields = (self.constant, self.weights, self.precisions, self.relevances)
        return GaussianSum(*(v.detach() for v in fields))


def gaussian_sum(kernel: Kernel) -> GaussianSum | None:
    """Return a kernel as a sum of Gaussians, or None where that is not known.

    Known are airbo's own base kernels, the squared exponential, and Matérn kernels with ν = 3/2 and
    5/2, with one length scale or one per column.
    """
    own = getattr(kernel, "gaussian_sum", None)
    if own is not None:
        result: GaussianSum | None = own()
        return result
    if kernel.batch_shape or kernel.active_dims is not None:
        return None
    if isinstance(kernel, RBFKernel):
        parts: tuple[tuple[float, float], ...] = ((1.0, 1.0),)
    elif isinstance(kernel, MaternKernel) and kernel.nu in _MATERN:
        parts = _MATERN[kernel.nu]
    else:
        return None
    relevances = kernel.lengthscale.reshape(-1).square().reciprocal()
    weights, precisions = relevances.new_tensor(parts).unbind(-1)
    return GaussianSum(relevances.new_zeros(()), weights / weights.sum(), precisions, relevances)
