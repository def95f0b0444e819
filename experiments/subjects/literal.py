r"""The paper's own model and estimators, as the paper prints them.

Notation
    u, v      samples of two designs, (..., m, d) in the unit cube; drawn anew in every call
    u_h, v_h  the first h of them: samples are independent, so this is a random choice
    k         the base kernel: five rational quadratics with learned length scales l_i
    U, V, W   K(u, u), K(v, v) and K(u, v); U_mh = K(u, u_h), U_h = K(u_h, u_h), and so on

    k̂(P, Q) = s exp(-α MMD²(P, Q)),   values have Gaussian noise, and all is fitted.

Equation 9, with its mixed term, where K⁺ is the pseudo-inverse:

    MMD² ≈ 1ᵀU_mh U_h⁺ U_hm 1/m² + 1ᵀV_mh V_h⁺ V_hm 1/m² - 2 1ᵀW_mh W_h⁺ W_hm 1/m²

The library's ``Nystrom`` is another: its mixed term is exact, and its samples are held. Here only
observations keep their samples, while the model is the same. So the kernel matrix of observations
can be factorized; every candidate of a search has new samples in every call.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from botorch.acquisition.analytic import LogExpectedImprovement, UpperConfidenceBound
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.optim.optimize import optimize_acqf
from gpytorch.kernels import Kernel, ScaleKernel
from gpytorch.mlls import ExactMarginalLogLikelihood
from jaxtyping import Float
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from airbo.embeddings import Empirical, Nystrom
from airbo.seeds import reproducible, stream_seed
from experiments.subjects.cases import Case
from experiments.subjects.loops import BoTorchLoop

EXPONENTS = (0.2, 0.5, 1.0, 2.0, 5.0)
"""a_i of the five rational quadratics."""
N_PAIRS = 2_048
"""Pairs of designs that are compared at a time: 160 samples with 10 landmarks need 26 MB."""
N_KEPT = 512
"""Up to so many pairs, what a gradient needs is kept (200 MB); else it is worked out again."""
CUTOFF = 1e-6
"""Singular values below this share of the largest one are zero to the pseudo-inverse."""
FITTED_EVERY, N_FIT = 10, 15
"""Observations from one fit of the hyper-parameters to the next, and the steps of a fit."""
N_RESTARTS, N_RAW, N_SEARCH = 4, 64, 25
BETA = 2.0

Draw = Callable[[int], Tensor]
"""Draws the deviations of so many designs, (n, m, d) in the unit cube."""


class LiteralKernel(Kernel):
    """exp(-α MMD²) between designs, from samples that are drawn anew."""

    def __init__(self, observed: Float[Tensor, "n d"], draw: Draw, n_landmarks: int | None) -> None:
        """Keep samples of the observations; without landmarks MMD² is the U-statistic."""
        super().__init__()
        self.draw, self.h = draw, n_landmarks
        self.observed, self.kept = observed, observed.unsqueeze(-2) + draw(len(observed))
        self._own_kept: Tensor | None = None
        start = math.log(0.3 * math.sqrt(observed.shape[-1]))
        self.register_parameter(
            "log_lengthscales", torch.nn.Parameter(observed.new_full((len(EXPONENTS),), start))
        )
        self.register_parameter("log_alpha", torch.nn.Parameter(observed.new_zeros(())))

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Tensor:
        if diag:
            return x1.new_ones(x1.shape[:-1])  # k̂(P, P) = 1: only variances are asked for
        shape = torch.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
        n, q = x1.shape[-2], x2.shape[-2]
        same = (x1.unsqueeze(-2) == x2.unsqueeze(-3)).all(-1).expand(*shape, n, q)
        square = n == q and bool(same.diagonal(dim1=-2, dim2=-1).all())
        u, own_u = self._samples_with_own_term(x1)
        v, own_v = (u, own_u) if square else self._samples_with_own_term(x2)
        u, v = (s.expand(*shape, *s.shape[-3:]) for s in (u, v))
        own_u, own_v = (s.expand(*shape, s.shape[-1]) for s in (own_u, own_v))

        # -2 E k(u, v), pair by pair; only i < j if both sets are the same
        pairs = torch.ones_like(same).triu(1) if square else torch.ones_like(same)
        *batch, i, j = pairs.nonzero(as_tuple=True)
        mixed = self._chunked(u[(*batch, i)], v[(*batch, j)])
        mmd2 = own_u[(*batch, i)] + own_v[(*batch, j)] - 2 * mixed
        values = torch.exp(-self.log_alpha.exp() * mmd2)
        K = values.new_zeros(same.shape).index_put(tuple(pairs.nonzero(as_tuple=True)), values)
        if not square:
            return torch.where(same, torch.ones_like(K), K)
        K = K + K.mT + torch.eye(n).to(K)  # k̂(P, P) = 1
        # estimates are not positive definite in general: shift the spectrum as far as it needs
        lowest = torch.linalg.eigvalsh(K.detach())[..., :1, None]
        return K + (1e-6 - lowest).clamp_min(0) * torch.eye(n).to(K)

    def _samples_with_own_term(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return samples, (..., n, m, d), and what E k(u, u') is estimated at, (..., n)."""
        known = (X.unsqueeze(-2) == self.observed).all(-1)  # (..., n, observations)
        if not self.log_alpha.requires_grad and bool(known.any(-1).all()):
            # the model is fitted: what depends on the observations alone is worked out once
            if self._own_kept is None:
                self._own_kept = self._chunked(self.kept, None)
            chosen = known.long().argmax(-1)
            return self.kept[chosen], self._own_kept[chosen]
        fresh = X.unsqueeze(-2) + self.draw(X.shape[:-1].numel()).view(
            *X.shape[:-1], -1, X.shape[-1]
        )
        samples = torch.where(
            known.any(-1)[..., None, None], self.kept[known.long().argmax(-1)], fresh
        )
        flat = samples.flatten(0, -3)
        return samples, self._chunked(flat, None).view(X.shape[:-1])

    def _chunked(self, u: Tensor, v: Tensor | None) -> Tensor:
        parts = zip(
            u.split(N_PAIRS), u.split(N_PAIRS) if v is None else v.split(N_PAIRS), strict=True
        )
        estimate = self._own if v is None else self._mixed
        if not torch.is_grad_enabled() or len(u) <= N_KEPT:
            return torch.cat([estimate(a, b) for a, b in parts])
        # memory for one part at a time: the others are worked out again for the gradient
        return torch.cat([checkpoint(estimate, a, b, use_reentrant=False) for a, b in parts])

    def _own(self, u: Tensor, _: Tensor) -> Tensor:
        m = u.shape[-2]
        if self.h is None:
            # U-statistic: Σ_{i≠j} k(u_i, u_j) / m(m-1), where k(u, u) = 5
            return (self.base(u, u).sum((-2, -1)) - m * len(EXPONENTS)) / (m * (m - 1))
        return self._mixed(u, u)

    def _mixed(self, u: Tensor, v: Tensor) -> Tensor:
        """Return 1ᵀK_mh K_h⁺ K_hm 1/m², or the mean of K without landmarks."""
        if self.h is None:
            return self.base(u, v).mean((-2, -1))
        u_h, v_h = u[..., : self.h, :], v[..., : self.h, :]
        left = self.base(u, v_h).mean(-2)  # 1ᵀK_mh/m, (p, h)
        right = self.base(u_h, v).mean(-1)  # K_hm 1/m, (p, h)
        inverse = torch.linalg.pinv(self.base(u_h, v_h), rtol=CUTOFF)  # (p, h, h)
        return torch.einsum("pi,pij,pj->p", left, inverse, right)

    def base(self, u: Tensor, v: Tensor) -> Tensor:
        """Return Σ_i (1 + r²/(2 a_i l_i²))^-a_i between samples."""
        # r² = |u|² - 2 uᵀv + |v|²
        u2, v2 = u.square().sum(-1, keepdim=True), v.square().sum(-1).unsqueeze(-2)
        r2 = (torch.baddbmm(u2 + v2, u, v.mT, alpha=-2)).clamp_min(0)
        halved = torch.exp(-2 * self.log_lengthscales) / (2 * r2.new_tensor(EXPONENTS))
        fifth, root, one, two, five = (1 + r2 * scale for scale in halved)
        # powers -0.2, -0.5, -1, -2 and -5, written out: general powers take five times as long
        inverse = five.reciprocal()
        return (
            torch.exp(-0.2 * fifth.log())
            + root.rsqrt()
            + one.reciprocal()
            + two.reciprocal().square()
            + inverse.square().square() * inverse
        )


class LiteralLoop(BoTorchLoop):
    """The paper's model under UCB, or under the expected improvement of the published program."""

    def __init__(
        self,
        case: Case,
        repeat: int,
        estimator: Nystrom | Empirical,
        acquisition: str = "ucb",
    ) -> None:
        """Start without observations; the error of the case must be additive."""
        if not case.tried_under.is_additive:
            raise ValueError(f"Samples are drawn under additive errors, not {case.tried_under!r}.")
        super().__init__(case, repeat)
        self.m = estimator.n_samples
        self.h = estimator.n_landmarks if isinstance(estimator, Nystrom) else None
        self.acquisition = acquisition
        self.random = torch.Generator().manual_seed(
            stream_seed(case.seed(repeat), "samples") % 2**62
        )
        self.hyperparameters: dict[str, Tensor] = {}

    def _acquisition(self) -> Any:
        model = self._fitted()
        if self.acquisition == "ucb":
            return UpperConfidenceBound(model, beta=BETA**2)
        return LogExpectedImprovement(model, best_f=max(self.values))  # of the raw values

    def _best(self, function: Any) -> Tensor:
        search: dict[str, Any] = {"num_restarts": N_RESTARTS, "raw_samples": N_RAW}
        Z, _ = optimize_acqf(function, self.cube, 1, **search, options={"maxiter": N_SEARCH})
        return Z.detach()

    def _fitted(self) -> SingleTaskGP:
        if self.model is None:
            Y = torch.tensor(self.values, dtype=torch.float64).unsqueeze(-1)
            self.model = self._build(self._to_cube(self.designs), Y)
            if self.hyperparameters:
                self.model.load_state_dict(self.hyperparameters, strict=False)
            if not self.hyperparameters or len(self.values) % FITTED_EVERY == 0:
                self._fit(self.model)
            self.model.requires_grad_(False).eval()
        return self.model

    def _fit(self, model: SingleTaskGP) -> None:
        mll = ExactMarginalLogLikelihood(model.likelihood, model)
        with reproducible(self.seed, "fit", len(self.values)):
            fit_gpytorch_mll(
                mll, optimizer_kwargs={"options": {"maxiter": N_FIT}}, max_attempts=1,
                warning_handler=lambda warning: True,
            )  # fmt: skip
        self.hyperparameters = {n: p.detach().clone() for n, p in model.named_parameters()}

    def _build(self, Z: Tensor, Y: Tensor) -> SingleTaskGP:
        kernel = ScaleKernel(LiteralKernel(Z, self._deviations, self.h))
        return SingleTaskGP(Z, Y, covar_module=kernel)

    def _deviations(self, n: int) -> Tensor:
        P, d = self.case.tried_under, self.case.d
        base = torch.rand(n * self.m, P.n_base(d), generator=self.random, dtype=torch.float64)
        origin = torch.zeros(1, d, dtype=torch.float64)
        landed = P.perturb(origin, base.clamp(1e-12, 1 - 1e-12))[0] / self.width
        return landed.view(n, self.m, d)
