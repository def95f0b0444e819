"""Every law that authors of new parts can check finds what breaks it."""

from dataclasses import dataclass

import pytest
import torch

from airbo import uncertainty as unc
from airbo.models import ERBFGP, MMDGP, SKLGP, UGP, ExpectationGP, NominalGP, RelevanceGP
from airbo.testing import check_surrogate, check_uncertainty
from airbo.uncertainty.gaussians import Mixture


@dataclass(frozen=True, eq=False, repr=False)
class Shift(unc.InputUncertainty):
    """A right kind, which those below break in one place each: a normal with a bias."""

    std: float = 0.2

    is_additive = True
    independent_columns = True

    def _perturb(self, X, base):
        return X.unsqueeze(-2) + 0.1 + self.std * torch.special.ndtri(base)


class WrongShape(Shift):
    def _mean(self, X):
        return X[..., :1] + 0.1


class SeesOthers(Shift):
    def _perturb(self, X, base):
        return super()._perturb(X, base) + X.flatten(0, -2).std(dim=0, correction=0)


class Global(Shift):
    def _perturb(self, X, base):
        return super()._perturb(X, base) + torch.randn(1).to(X)


class NoGradient(Shift):
    def _perturb(self, X, base):
        return (
            super()._perturb(X, base) - X.unsqueeze(-2).detach() + X.unsqueeze(-2).square().detach()
        )


class Biased(Shift):
    def _mean(self, X):
        return X


class WrongCdf(Shift):
    def _cdf(self, X, t):
        return torch.special.ndtr((t - X) / self.std)


class WrongWaves(Shift):
    def characteristic(self, W):
        return super().characteristic(2 * W)


class WrongGaussians(Shift):
    def _gaussians(self, X, r):
        weights = X.new_ones(*X.shape[:-1], 1)
        return [
            Mixture(
                (c,),
                weights,
                X[..., [c]].unsqueeze(-2),
                0.01 * torch.ones_like(X[..., [c]]).unsqueeze(-2),
            )
            for c in range(X.shape[-1])
        ]


class Endless(Shift):
    def is_bounded(self, d):
        return True


class NotAdditive(Shift):
    def _perturb(self, X, base):
        return X.unsqueeze(-2) * (1 + self.std * torch.special.ndtri(base))


class SharedNumbers(Shift):
    def _perturb(self, X, base):
        return super()._perturb(X, base.flip(-1))


class WrongBlocks(Shift):
    def on_columns(self, columns):
        return Shift(2 * self.std)


class Careless(Shift):
    @property
    def dim(self):
        return 2

    def check_dim(self, d):
        pass


class WrongMultiple(Shift):
    def _scaled(self, factor):
        return type(self)(factor * self.std)


class Forgetful(Shift):
    def to_dict(self):
        return {"kind": "Forgetful", "std": 0.3}


class Talkative(Shift):
    def words(self, show):
        return "normal\nwith a bias"


BROKEN = {
    WrongShape: "shapes: mean of designs",
    SeesOthers: "batch = loop: perturb of a design depends on the other designs",
    Global: "same draws, same samples: the same base draws gave other samples",
    NoGradient: "gradients: the gradient of perturb",
    Biased: "moments = samples: mean is off",
    WrongCdf: "cdf = samples: cdf is off",
    WrongWaves: "characteristic function = samples: characteristic is off",
    WrongGaussians: "Gaussians = samples: the sum of its Gaussians is off",
    Endless: "bounds: is_bounded says True",
    NotAdditive: "claims: is_additive says True",
    SharedNumbers: "own base numbers: column 0 is made from",
    WrongBlocks: "moments = samples: covariance is off",
    Careless: "refusals: a design with a column more",
    WrongMultiple: r"scaled: scaled\(0\) does not multiply",
    Forgetful: "copies: what JSON gives back is not equal",
    Talkative: "words: words should be one line",
}


def test_limits_that_hold_nearly_always_break_no_law():
    check_uncertainty(unc.Relative(unc.Normal(0.1)).clipped(-0.3, 0.4))


def test_a_kind_of_ones_own_keeps_the_laws():
    check_uncertainty(Shift())
    check_uncertainty(Shift(), d=1)
    check_uncertainty(Shift(), designs=torch.tensor([[100.0, 200.0, 300.0]]))


@pytest.mark.parametrize(
    ("kind", "message"), BROKEN.items(), ids=lambda v: getattr(v, "__name__", "")
)
@pytest.mark.usefixtures("as_without_shape_checks")
def test_what_breaks_a_law_is_named(kind, message):
    with pytest.raises(AssertionError, match=message):
        check_uncertainty(kind())


def test_a_law_that_raises_is_broken():
    class Fails(Shift):
        def _cdf(self, X, t):
            raise RuntimeError("not today")

    with pytest.raises(AssertionError, match="cdf = samples: raised RuntimeError: not today"):
        check_uncertainty(Fails())


@pytest.mark.parametrize("kind", [MMDGP, UGP, ExpectationGP, RelevanceGP, NominalGP, ERBFGP, SKLGP])
def test_our_surrogates_keep_the_laws(kind):
    check_surrogate(kind)


@pytest.mark.parametrize(
    ("uncertainty", "d"),
    [
        (unc.Relative(unc.Uniform(-0.1, 0.1)), 2),
        (unc.Ring(0.2), 2),
        (unc.Empirical([[0.1, -0.2], [0.0, 0.3], [0.05, 0.0]]), 2),
        (unc.Normal(0.2).clipped(-1.0, 1.0), 1),
        (unc.Exact(), 3),
    ],
    ids=str,
)
def test_the_default_surrogate_keeps_the_laws_under_any_uncertainty(uncertainty, d):
    check_surrogate(RelevanceGP, uncertainty, d)


class Moody(ExpectationGP):
    """Its mean depends on how often it was asked."""

    asked = 0

    def posterior(self, X, *args, **kwargs):
        type(self).asked += 1
        return super().posterior(X + 1e-3 * self.asked, *args, **kwargs)


class SeesNeighbours(ExpectationGP):
    def posterior(self, X, *args, **kwargs):
        return super().posterior(X + 0.1 * X.mean(dim=-2, keepdim=True), *args, **kwargs)


class TwoKernels(ExpectationGP):
    def train(self, mode=True):
        super().train(mode)
        self.covar_module.outputscale = 2.0 if mode else 1.0
        return self


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (Moody, "questions: predictions change"),
        (SeesNeighbours, "batch = loop: designs together"),
        (TwoKernels, "fit = prediction: kernels"),
        (lambda *a, **k: 1 / 0, "predictions: raised ZeroDivisionError"),
    ],
)
def test_a_surrogate_that_breaks_a_law_is_told_which(kind, message):
    with pytest.raises(AssertionError, match=message):
        check_surrogate(kind)
