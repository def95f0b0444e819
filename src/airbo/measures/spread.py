r"""How far values differ within P_x, corrected for what the model does not know.

Executed inputs that nobody saw say little about f *within* P_x. What a draw does there comes from
the prior, and the prior is as rough everywhere. Naive draws are therefore too rough where f is
smooth and too smooth where it is rough, and all of them are so alike. So every draw i gets a
roughness of its own:

.. math::

    f_i(x') = \bar f_i + r_i \big[ (\mu(x') - \bar\mu) + \kappa_i (e_i(x') - \bar e_i) \big],
    \qquad \log r_i \sim \mathcal N(0, \tau / 4), \quad \kappa_i \sim \mathcal U(1 - \tau, 1)

with bars for means over P_x. The mean :math:`\bar f_i` stays as it is. :math:`\tau` between 0 and 1
is how much of the variance within P_x the observations have left of that of the prior: where f is
known within P_x, as from exact experiments nearby, nothing is corrected.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from airbo.models.draws import Drawn

ROUGHNESS = 0.5
"""Standard deviation of log r where nothing is known within P_x."""


def corrected(
    drawn: Drawn, roughness: float = ROUGHNESS, n: int | None = None
) -> Float[Tensor, "draws *batch s"]:
    """Return values of all draws, with the spread within P_x that the model can answer for.

    Args:
        drawn: Draws at executed inputs.
        roughness: Standard deviation of log r where nothing is known within P_x.
        n: How many of the executed inputs, the first ones, stand for P_x; by default all. The same
            functions are returned at the others.
    """
    e, mean = drawn.deviations, drawn.mean
    if mean.shape[-1] == 1:
        return torch.cat([mean + e, mean - e])
    level, within = mean[..., :n].mean(-1, keepdim=True), e[..., :n].mean(-1, keepdim=True)
    tau = unknown_share(drawn, n).unsqueeze(-1)
    # log r_i = ρ √τ Φ⁻¹(u_i) and κ_i = 1 - τ (1 - u_i), with ranks u_i in place of draws
    u = _ranks(e)
    r = torch.exp(roughness * torch.special.ndtri(u) * tau.sqrt())
    e = within + r * (1 - tau + tau * u) * (e - within)
    known = level + r * (mean - level)
    return torch.cat([known + e, known - e])


def unknown_share(drawn: Drawn, n: int | None = None) -> Float[Tensor, "*batch"]:
    """Return how much of the prior's variance within P_x is left."""
    both = (v[..., :n] for v in (drawn.deviations, drawn.prior))
    left, before = (v.var(-1, correction=0).mean(0) for v in both)
    return (left / before.clamp_min(1e-300)).clamp(1e-6, 1.0)


def _ranks(e: Float[Tensor, "p *batch s"]) -> Tensor:
    """Return numbers evenly spaced in (0, 1), one per draw: draws are in no order."""
    u = (torch.arange(len(e)).to(e) + 0.5) / len(e)
    return u.reshape(-1, *[1] * (e.dim() - 1))
