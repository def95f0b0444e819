r"""How far values differ within P_x, corrected for what the model does not know.

Executed inputs that nobody saw say little about f *within* P_x. What a draw does there comes from
the prior, and the prior is as rough everywhere. Naive draws are therefore too rough where f is
smooth and too smooth where it is rough, and all of them are so alike. Observations nearby say which
it is, and every draw i gets a roughness of its own:

.. math::

    f_i(x') = \bar f_i + r_i^\tau (\mu(x') - \bar\mu) + c \, r_i (e_i(x') - \bar e_i)

with bars for means over P_x. The mean :math:`\bar f_i` stays as it is. :math:`\tau` between 0 and 1
is how much of the variance within P_x the observations have left of that of the prior. Where f is
known within P_x, as from exact experiments nearby, the deviations e are small and :math:`\tau` is
near 0, so little changes.

The *local roughness* c is learned: how much observations nearby have surprised the model, relative
to all observations,

.. math:: c = \frac{\nu_0 + \sum_j w_j |z_j|}{\nu_0 + \sum_j w_j}

with surprises :math:`|z_j|` and weights :math:`w_j` of :mod:`airbo.models.draws`, averaged over
P_x. What they cannot tell is the random :math:`r_i`: its logarithm is normal with a standard
deviation :math:`\sigma_r` of 0.6 above its median 0, and of 1.5 below, because f may be flat.

Observations that landed somewhere in P_x also scatter by what f does there. So many of them tell
how large that is, although nobody saw where they landed: their information about the logarithm of
the standard deviation within P_x is :math:`I = 2 \tau^2 \sum_j w_j (u_j / V_j)^2`, with the share
:math:`u_j / V_j` of a prediction error that is due to it. A draw with the standard deviation
:math:`s_i`, where :math:`s` is that of all draws, gets what such a measurement leaves,

.. math:: \log r_i \sim \mathcal N\Big((b - 1) \log \frac{s_i}{s},\; b \, \sigma_r^2\Big),
          \qquad b = \frac{1}{1 + I \sigma_r^2}

Without information, b is 1. With much of it, all draws scatter alike, by :math:`c \, s`.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from airbo.models.draws import Drawn

ROUGHER, FLATTER = 0.6, 1.5
"""Standard deviation of log r, above and below its median."""
UNSURPRISED = 0.2
"""Number of observations as surprising as the average one that are near to every design."""


def with_local_spread(drawn: Drawn, n: int | None = None) -> Float[Tensor, "draws *batch s"]:
    """Return values of all draws, with the spread within P_x that the model can answer for.

    Args:
        drawn: Draws at executed inputs.
        n: How many of the executed inputs, the first ones, stand for P_x; by default all. The same
            functions are returned at the others.
    """
    e, mean = drawn.deviations, drawn.mean
    # one executed input has no spread: f = μ ± e
    if mean.shape[-1] == 1:
        return torch.cat([mean + e, mean - e])

    # means over P_x: μ̄ of the posterior mean, ē of each deviation
    level, within = mean[..., :n].mean(-1, keepdim=True), e[..., :n].mean(-1, keepdim=True)
    tau, c = (share(drawn, n).unsqueeze(-1) for share in (unknown_share, local_roughness))
    # c r_i (e_i(x') - ē_i) around ē_i, which keeps the mean over P_x of every draw
    log_r = _log_roughness(e[..., :n] - within, _information(drawn, n))
    e = within + c * log_r.exp() * (e - within)

    # r_i^τ (μ(x') - μ̄) around μ̄
    known = level + (tau * log_r).exp() * (mean - level)
    return torch.cat([known + e, known - e])


def unknown_share(drawn: Drawn, n: int | None = None) -> Float[Tensor, "*batch"]:
    """Return how much of the prior's variance within P_x is left."""
    # τ = Var_x' e / Var_x' g, both averaged over draws; g is the prior's
    both = (v[..., :n] for v in (drawn.deviations, drawn.prior))
    left, before = (v.var(-1, correction=0).mean(0) for v in both)
    return (left / before.clamp_min(1e-300)).clamp(1e-6, 1.0)


def local_roughness(drawn: Drawn, n: int | None = None) -> Float[Tensor, "*batch"]:
    """Return how much rougher f is here than on average, as observations nearby say."""
    # c = (ν₀ + Σ_j w_j |z_j|) / (ν₀ + Σ_j w_j), with sums averaged over P_x
    count, surprise = drawn.near[..., :n, :2].mean(-2).unbind(-1)
    return (UNSURPRISED + surprise) / (UNSURPRISED + count)


def _information(drawn: Drawn, n: int | None) -> Float[Tensor, "*batch 1"]:
    """Return the information about log r in observations nearby."""
    # I = 2 τ² Σ_j w_j (u_j / V_j)², with sums averaged over P_x
    nearby = drawn.near[..., :n, 2].mean(-1, keepdim=True)
    return 2 * unknown_share(drawn, n).unsqueeze(-1).square() * nearby


def _log_roughness(
    e: Float[Tensor, "p *batch s"], information: Float[Tensor, "*batch 1"]
) -> Tensor:
    """Return log r_i, one per draw, where a draw deviates within P_x by e."""
    # u_i = (i + ½) / p: a stratified sample, the same for every design; draws are in no order
    u = (torch.arange(len(e)).to(e) + 0.5) / len(e)
    z = torch.special.ndtri(u).reshape(-1, *[1] * (e.dim() - 1))
    sigma = torch.where(z > 0, ROUGHER, FLATTER)
    # log s_i / s, with s_i² = Var_x' e_i and s² its mean over draws
    variance = e.square().mean(-1, keepdim=True)
    own = 0.5 * (variance / variance.mean(0)).clamp_min(1e-12).log()
    # log r ~ N(0, σ²), and a measurement 0 = log r + log s_i / s + N(0, 1 / I); b is left
    left = 1 / (1 + information * sigma.square())
    return left.sqrt() * sigma * z - (1 - left) * own
