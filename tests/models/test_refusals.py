"""What no surrogate can use is refused at birth, in the user's words."""

import math

import pytest
import torch
from gpytorch.kernels import LinearKernel

from airbo import uncertainty as unc
from airbo.models import ERBFGP, MMDGP, SKLGP, UGP, ExpectationGP
from tests.surrogates import box, designs, every_surrogate, surrogate, values

pytestmark = pytest.mark.usefixtures("as_without_shape_checks")

X = designs(4, 2)
Y = values(X)
NAN = torch.full((4, 1), math.nan, dtype=torch.float64)
P = unc.Normal(0.1)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((X[0], Y, P), ValueError, r"train_X must have shape \(n, d\), n and d >= 1, got \(2,\)"),
        ((X[:0], Y[:0], P), ValueError, r"train_X must have shape .* got \(0, 2\)"),
        ((X[None], Y, P), ValueError, r"train_Y must have shape \(1, 4, 1\), as train_X"),
        ((X[None, :0], Y, P), ValueError, r"train_X must have shape .* got \(1, 0, 2\)"),
        ((X, Y[:3], P), ValueError, r"train_Y must have shape \(4, 1\), as train_X, got \(3, 1\)"),
        ((X, Y[:, 0], P), ValueError, r"train_Y must have shape \(4, 1\), as train_X, got \(4,\)"),
        ((X, NAN, P), ValueError, "train_Y contains values that are not finite"),
        ((X / 0, Y, P), ValueError, "train_X contains values that are not finite"),
        ((X, Y, P, box(3)), ValueError, r"bounds must have shape \(2, 2\), got \(2, 3\)"),
        ((X, Y, P, box(2).mT[:1]), ValueError, r"bounds must have shape \(2, 2\), got \(1, 2\)"),
        ((X, Y, P, box(2, 1.0, 1.0)), ValueError, "bounds must be finite with low < high"),
        ((X, Y, P, box(2, 2.0, 1.0)), ValueError, "bounds must be finite with low < high"),
        ((X, Y, P, box(2, 0.0, math.inf)), ValueError, "bounds must be finite with low < high"),
        ((X, Y, [P] * 3), ValueError, "There are 4 observations but 3 uncertainties"),
        ((X, Y, [P, P, P, 0.1]), TypeError, "Uncertainty 3 must be an airbo.uncertainty, got 0.1"),
        ((X, Y, 0.1), TypeError, "uncertainty must be an airbo.uncertainty, .* got 0.1"),
        ((X, Y, unc.Ring), TypeError, "uncertainty must be an airbo.uncertainty, .* got"),
        ((X, Y, {"x": P}), TypeError, "uncertainty must be an airbo.uncertainty, .* got"),
        ((X, Y, unc.Normal([0.1] * 3)), ValueError, "acts on designs with 3 columns, got 2"),
        ((X.tolist(), Y, P), TypeError, "train_X must be a tensor of floating-point numbers"),
        ((X.long(), Y, P), TypeError, "train_X must be a tensor of floating-point .* got .*int64"),
        ((X, Y.numpy(), P), TypeError, "train_Y must be a tensor of floating-point numbers"),
        ((X, Y.long(), P), TypeError, "train_Y must be a tensor of floating-point numbers"),
        ((X, Y.float(), P), TypeError, "train_Y must have the dtype of train_X"),
        ((X, Y, P, [(0, 1), (0, 1)]), TypeError, "bounds must be a tensor of floating-point"),
    ],
)
def test_data_that_make_no_sense_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        MMDGP(*arguments)


@every_surrogate
def test_every_surrogate_looks_at_each_of_its_arguments(kind):
    for arguments, message in (
        ((X / 0, Y, P, box(2)), "train_X contains values that are not finite"),
        ((X, NAN, P, box(2)), "train_Y contains values that are not finite"),
        ((X, Y, [P] * 3, box(2)), "There are 4 observations but 3 uncertainties"),
        ((X, Y, P, box(2, 2.0, 1.0)), "bounds must be finite with low < high"),
    ):
        with pytest.raises(ValueError, match=message):
            kind(*arguments)


@every_surrogate
def test_queries_with_the_wrong_columns_are_refused(kind):
    model = surrogate(kind, P, 2)
    with pytest.raises(ValueError, match=r"The designs must have 2 columns, got shape \(3, 1\)"):
        model.posterior(designs(3, 1))
    with pytest.raises(ValueError, match=r"The designs must have 2 columns, got shape \(2,\)"):
        model.posterior(designs(3, 2)[0])
    with pytest.raises(ValueError, match=r"The designs must have 2 columns, got shape \(3, 3\)"):
        model.posterior(designs(3, 3))
    with pytest.raises(ValueError, match=r"The designs must have 2 columns, got shape \(3, 4\)"):
        model.condition_on_observations(designs(3, 4), values(designs(3, 4)))
    with pytest.raises(ValueError, match="acts on designs with 1 columns, got 2"):
        model.posterior(designs(3, 2), uncertainty=unc.Normal([0.1]))
    with pytest.raises(TypeError, match=r"uncertainty must be an airbo\.uncertainty, got 0\.1"):
        model.posterior(designs(3, 2), uncertainty=0.1)
    assert torch.isfinite(model.posterior(designs(3, 2)).mean).all()  # and it still works


VARYING = {
    "no uncertainty": (lambda x: 0.1 * x, "must return an uncertainty, got Tensor"),
    "negative": (lambda x: unc.Normal(x - 10), "std must be >= 0"),
    "one row": (lambda x: unc.Normal(0.1 * x[..., :1, :].abs()), "does not fit"),
    "wrong columns": (lambda x: unc.Normal([0.1] * 3), "3 columns, got 2"),
    "nan": (lambda x: unc.Normal(x * math.nan), "std must be finite"),
    "uniform rows": (lambda x: unc.Uniform(-1, x[..., :1, :] + 5), "does not fit"),
    "beta rows": (lambda x: unc.Beta(2, 3, scale=x[..., :1, :] + 5), "does not fit"),
}


@pytest.mark.parametrize("kind", [MMDGP, SKLGP], ids=lambda k: k.__name__)  # samples, moments
@pytest.mark.parametrize(("fn", "message"), VARYING.values(), ids=VARYING)
def test_a_varying_uncertainty_that_goes_wrong_says_so(kind, fn, message):
    with pytest.raises(ValueError, match=message):
        kind(X, Y, unc.Varying(fn, probe=0.5), box(2)).posterior(X[:3] + 0.1)


def test_an_expectation_gp_needs_a_stationary_base_kernel():
    with pytest.raises(ValueError, match="needs a stationary base kernel, got LinearKernel"):
        ExpectationGP(X, Y, P, base_kernel=LinearKernel())
    UGP(X, Y, P, base_kernel=LinearKernel()).posterior(X)  # its noise does not depend on it


@every_surrogate
def test_a_wrong_keyword_is_refused_in_the_name_of_the_surrogate(kind):
    with pytest.raises(TypeError, match=rf"^{kind.__name__} got an unexpected argument 'bound'"):
        kind(X, Y, P, bound=box(2))


@pytest.mark.parametrize("kind", [ERBFGP, SKLGP], ids=lambda k: k.__name__)
def test_a_kernel_in_closed_form_takes_no_base_kernel(kind):
    with pytest.raises(TypeError, match=rf"^{kind.__name__} has a kernel of its own"):
        kind(X, Y, P, base_kernel=LinearKernel())
