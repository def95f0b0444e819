"""What people do with BoTorch models works with the surrogates."""

import copy
import io
import pickle

import joblib
import pytest
import torch
from botorch.acquisition.logei import qLogNoisyExpectedImprovement
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.cross_validation import batch_cross_validation, gen_loo_cv_folds, loo_cv
from botorch.fit import fit_gpytorch_mll
from botorch.models import ModelListGP
from botorch.models.transforms import Log, Standardize
from botorch.models.transforms.input import InputPerturbation
from botorch.sampling import SobolQMCNormalSampler
from gpytorch.mlls import ExactMarginalLogLikelihood

from airbo import uncertainty as unc
from airbo.models import ERBFGP, MMDGP, SKLGP, UGP, ExpectationGP, NominalGP, RelevanceGP
from tests.surrogates import (
    SAMPLE_KINDS,
    box,
    designs,
    every_surrogate,
    moments,
    set_hyperparameters,
    surrogate,
    values,
)

every_kind_of_features = pytest.mark.parametrize(("uncertainty", "d"), SAMPLE_KINDS[:3])


def through_joblib(model):
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    return joblib.load(file)


COPIES = {
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
    "deepcopy": copy.deepcopy,
    "joblib": through_joblib,
}


def mixed(kind, n=8, d=2, **kwargs):
    """A model whose observations were made under three uncertainties."""
    X = designs(n, d)
    kinds = [unc.Normal(0.3), unc.Exact(), unc.Normal(0.3), unc.Uniform(-0.8, 0.8)]
    own = [kinds[i % 4] for i in range(n)]
    return set_hyperparameters(kind(X, values(X), own, box(d), **kwargs)), own


def assert_same(a, b, atol=1e-8):
    for ours, theirs in zip(a, b, strict=True):
        torch.testing.assert_close(ours.detach(), theirs.detach(), atol=atol, rtol=atol)


def tolerance(kind):
    """Return how far predictions may differ that see the kernel in two ways.

    Its values are exact to 1e-4 of the largest. Longer length scales, as those of RelevanceGP, make
    covariances harder to invert, and more of this error is left in predictions.
    """
    return 1e-4 if kind is RelevanceGP else 1e-5


# -- copies


@every_surrogate
@pytest.mark.parametrize(
    ("copied", "uncertainty", "d"),
    [(COPIES["pickle"], *pair) for pair in SAMPLE_KINDS[:3]]
    + [(COPIES[name], *SAMPLE_KINDS[1]) for name in ("deepcopy", "joblib")],
)
def test_a_used_model_can_be_copied_and_predicts_the_same(kind, uncertainty, d, copied):
    model = set_hyperparameters(surrogate(kind, uncertainty, d))
    Q = designs(3, d, seed=1)
    before = moments(model, Q), moments(model, Q, uncertainty=unc.Exact())
    model.condition_on_observations(Q, values(Q), uncertainty=unc.Exact())
    back = copied(model)
    after = moments(back, Q), moments(back, Q, uncertainty=unc.Exact())
    for ours, theirs in zip(before, after, strict=True):
        assert_same(ours, theirs, atol=tolerance(kind))
    fit_gpytorch_mll(ExactMarginalLogLikelihood(back.likelihood, back))
    assert_same(moments(model, Q), before[0], atol=tolerance(kind))


# -- nothing changes the model that is asked


@every_surrogate
def test_conditioning_leaves_the_model_alone(kind):
    model = surrogate(kind, unc.Normal(0.2), 2)
    Q = designs(3, 2, seed=1)
    before = moments(model, Q)
    inputs, targets = model.train_inputs, model.train_targets.clone()
    grown = model.condition_on_observations(Q, values(Q), uncertainty=unc.Exact())
    assert all(a is b for a, b in zip(model.train_inputs, inputs, strict=True))
    assert torch.equal(model.train_targets, targets)
    assert_same(moments(model, Q), before, atol=1e-5)
    assert grown.train_inputs[0].shape == (10, 2)


# -- one uncertainty per observation


@every_surrogate
def test_training_inputs_are_the_designs_whatever_they_were_made_under(kind):
    model, _ = mixed(kind)
    assert torch.equal(model.train_inputs[0], designs(8, 2))


@every_surrogate
def test_a_baseline_of_training_inputs_refers_to_the_deployment(kind):
    model, _ = mixed(kind, deployment=unc.Normal(0.1))
    X, Q = model.train_inputs[0], designs(4, 2, seed=1).unsqueeze(-2)
    sampler = SobolQMCNormalSampler(torch.Size([16]), seed=0)
    settings = {"sampler": sampler, "prune_baseline": False, "cache_root": False}
    ours = qLogNoisyExpectedImprovement(model, X, **settings)(Q)
    best = model.posterior(torch.cat([X.expand(4, -1, -1), Q], dim=-2))
    samples = sampler(best).squeeze(-1)
    gain = (samples[..., -1] - samples[..., :-1].amax(-1)).clamp_min(0).mean(0)
    assert ((ours.exp() - gain).abs() < 0.05 + 0.1 * gain).all()
    assert_same(moments(model, X), moments(model, X, uncertainty=unc.Normal(0.1)))


@every_surrogate
def test_conditioning_and_fantasies_of_a_mixed_model(kind):
    model, own = mixed(kind)
    new, Q = designs(2, 2, seed=1), designs(3, 2, seed=2)
    grown = model.condition_on_observations(new, values(new), uncertainty=unc.Exact())
    joined = torch.cat([designs(8, 2), new])
    fresh = kind(joined, values(joined), [*own, unc.Exact(), unc.Exact()], box(2))
    fresh.load_state_dict(model.state_dict())
    Y, _ = fresh.outcome_transform(values(joined))
    fresh.set_train_data(targets=Y.squeeze(-1), strict=False)
    assert_same(moments(grown, Q), moments(fresh, Q), atol=1e-5)
    sampler = SobolQMCNormalSampler(torch.Size([4]), seed=0)
    assert model.fantasize(new, sampler).posterior(Q).mean.shape == (4, 3, 1)


def test_a_posterior_transform_sees_designs():
    seen = []

    class Looking(ScalarizedPosteriorTransform):
        def forward(self, posterior, X=None):
            seen.append(X)
            return super().forward(posterior, X)

    model, _ = mixed(UGP)
    Q = designs(3, 2, seed=1)
    model.posterior(Q, posterior_transform=Looking(torch.ones(1, dtype=torch.float64)))
    assert seen[0] is Q


def test_other_designs_need_uncertainties_of_their_own():
    model, _ = mixed(UGP)
    with pytest.raises(ValueError, match="have different uncertainties"):
        model.set_train_data(designs(5, 2), torch.zeros(5, dtype=torch.float64), strict=False)
    X = designs(8, 2, seed=3)
    model.set_train_data(X, model.train_targets)
    assert torch.equal(model.train_inputs[0], X)
    assert len(model.train_inputs) == 2


# -- known noise, outcome transforms, cross-validation, several outputs


def by_hand(model, X, Y, noise, Q):
    """Condition a Gaussian by hand, on values without a transform."""
    K = model.covar_module(model.features(torch.cat([X, Q]))).to_dense()
    n, mean = len(X), model.mean_module(Q[:1])
    solved = torch.linalg.solve(K[:n, :n] + torch.diag(noise), K[:n, n:])
    posterior_mean = mean + solved.mT @ (Y.squeeze(-1) - mean)
    return posterior_mean.unsqueeze(-1), K[n:, n:] - K[n:, :n] @ solved


@every_surrogate
def test_known_noise_is_taken(kind):
    X, Q = designs(7, 2), designs(3, 2, seed=1)
    Yvar = 0.01 + 0.1 * torch.rand(7, 1, generator=torch.Generator().manual_seed(3)).double()
    given = (X, values(X), unc.Normal(0.3), box(2))
    model = kind(*given, train_Yvar=Yvar, outcome_transform=None)
    noise = Yvar.squeeze(-1)
    if issubclass(kind, (ExpectationGP, ERBFGP)):
        f = model.features(X)
        at_a_point = model.covar_module.outputscale * model.covar_module.base_kernel.at_a_point
        noise = noise + at_a_point - model.covar_module(f, diag=True)
    atol = tolerance(kind) if kind is RelevanceGP else 1e-7
    assert_same(moments(model, Q), by_hand(model, X, values(X), noise, Q), atol=atol)
    assert model.posterior(Q, observation_noise=True).variance.gt(model.posterior(Q).variance).all()
    learned = [name for name, p in model.named_parameters() if p.requires_grad]
    assert not any(name.endswith("raw_noise") for name in learned)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))


@every_surrogate
def test_noise_that_is_not_known_is_learned(kind):
    """Beside known variances, the learned one counts for the other observations."""
    X, Q = designs(7, 2), designs(3, 2, seed=1)
    given = (X, values(X), unc.Normal(0.3), box(2))
    learned = kind(*given, outcome_transform=None)
    Yvar = learned.likelihood.noise.detach().expand(7, 1).clone()
    Yvar[[1, 3, 4]] = torch.nan
    partly = kind(*given, train_Yvar=Yvar, outcome_transform=None)
    assert_same(moments(partly, Q), moments(learned, Q), atol=tolerance(kind))
    torch.testing.assert_close(partly.noise_variance(Q), learned.noise_variance(Q))


@pytest.mark.parametrize("kind", [UGP, MMDGP, SKLGP])
def test_conditioning_on_known_noise_beside_learned_noise(kind):
    X, new, Q = designs(7, 2), designs(2, 2, seed=1), designs(3, 2, seed=2)
    model = kind(X, values(X), unc.Normal(0.3), box(2), outcome_transform=None)
    more = torch.tensor([[0.2], [0.01]]).double()
    grown = model.condition_on_observations(new, values(new), noise=more)
    joined = torch.cat([X, new])
    Yvar = torch.cat([torch.full((7, 1), torch.nan).double(), more])
    fresh = kind(
        joined, values(joined), unc.Normal(0.3), box(2), train_Yvar=Yvar, outcome_transform=None
    )
    assert_same(moments(grown, Q), moments(fresh, Q), atol=1e-6)


@pytest.mark.parametrize("kind", [UGP, ExpectationGP, MMDGP, SKLGP])
def test_conditioning_with_known_noise_equals_a_new_model(kind):
    X, new, Q = designs(7, 2), designs(2, 2, seed=1), designs(3, 2, seed=2)
    Yvar, more = torch.full((7, 1), 0.05).double(), torch.full((2, 1), 0.2).double()
    model = kind(X, values(X), unc.Normal(0.3), box(2), train_Yvar=Yvar, outcome_transform=None)
    grown = model.condition_on_observations(new, values(new), noise=more)
    joined = torch.cat([X, new])
    fresh = kind(
        joined,
        values(joined),
        unc.Normal(0.3),
        box(2),
        train_Yvar=torch.cat([Yvar, more]),
        outcome_transform=None,
    )
    assert_same(moments(grown, Q), moments(fresh, Q), atol=1e-6)


@pytest.mark.parametrize(
    ("transform", "Y"), [(None, values), (Log(), lambda X: values(X).exp())], ids=["none", "log"]
)
def test_an_outcome_transform_replaces_the_standardization(transform, Y):
    X, Q = designs(7, 2), designs(3, 2, seed=1)
    model = UGP(X, Y(X), unc.Normal(0.3), box(2), outcome_transform=transform)
    torch.testing.assert_close(model.train_targets, values(X).squeeze(-1))
    plain = UGP(X, values(X), unc.Normal(0.3), box(2), outcome_transform=None)
    sampled = model.posterior(Q).rsample(torch.Size([2]))
    assert sampled.shape == (2, 3, 1)
    if transform is None:
        assert_same(moments(model, Q), moments(plain, Q))
    else:
        assert (sampled > 0).all()


@every_surrogate
def test_leaving_one_out_equals_models_without_it(kind):
    X = designs(7, 2)
    model = kind(X, values(X), unc.Normal(0.3), box(2), outcome_transform=None)
    result = loo_cv(model, observation_noise=True)
    for i in range(7):
        rest = [j for j in range(7) if j != i]
        other = kind(X[rest], values(X[rest]), unc.Normal(0.3), box(2), outcome_transform=None)
        other.load_state_dict(model.state_dict())
        expected = other.posterior(X[[i]], observation_noise=True)
        assert_same(
            (result.posterior.mean[i], result.posterior.variance[i]),
            (expected.mean, expected.variance),
            atol=tolerance(kind),
        )


def test_leaving_one_out_of_a_mixed_model_counts_its_own_uncertainty():
    model, own = mixed(ExpectationGP)
    X, Y = designs(8, 2), values(designs(8, 2))
    result = loo_cv(model)
    rest = list(range(1, 8))
    other = ExpectationGP(
        X[rest], Y[rest], own[1:], box(2), outcome_transform=copy.deepcopy(model.outcome_transform)
    )
    other.load_state_dict(model.state_dict())
    other.set_train_data(targets=model.train_targets[rest])
    expected = other.posterior(X[[0]], uncertainty=own[0], observation_noise=True)
    assert_same((result.posterior.mean[0],), (expected.mean,), atol=1e-5)


@every_surrogate
def test_batched_cross_validation(kind):
    X = designs(6, 2)
    folds = gen_loo_cv_folds(X, values(X))
    settings = {"uncertainty": unc.Normal(0.3), "bounds": box(2)}
    result = batch_cross_validation(
        kind, ExactMarginalLogLikelihood, folds, model_init_kwargs=settings
    )
    assert result.posterior.mean.shape == (6, 1, 1)
    one = kind(folds.train_X[2], folds.train_Y[2], **settings)
    state = {k: v for k, v in result.model.state_dict().items() if "outcome" not in k}
    state["mean_module.raw_constant"] = state["mean_module.raw_constant"][2]
    one.load_state_dict({**one.state_dict(), **state})
    expected = one.posterior(folds.test_X[2])
    assert_same(
        (result.posterior.mean[2], result.posterior.variance[2]),
        (expected.mean, expected.variance),
        atol=1e-5,
    )


@every_surrogate
def test_the_one_output_can_be_chosen_and_lists_predict_like_their_models(kind):
    model, _ = mixed(kind)
    Q = designs(3, 2, seed=1)
    assert_same(moments(model.subset_output([0]), Q), moments(model, Q), atol=1e-6)
    both = ModelListGP(model, surrogate(UGP, unc.Exact(), 2))
    assert_same((both.posterior(Q).mean[..., :1],), (model.posterior(Q).mean,))
    grown = both.condition_on_observations([Q, Q], torch.cat([values(Q), values(Q)], dim=-1))
    assert grown.posterior(Q).mean.shape[-2:] == (3, 2)


def test_a_perturbation_of_inputs_is_refused():
    model = surrogate(UGP, unc.Normal(0.2), 2)
    model.input_transform = InputPerturbation(torch.zeros(4, 2).double())
    with pytest.raises(ValueError, match="InputPerturbation would smooth twice"):
        model.posterior(designs(3, 2))
    with pytest.raises(
        TypeError, match="ExpectationGP got an unexpected argument 'input_transform'"
    ):
        ExpectationGP(designs(4, 2), values(designs(4, 2)), input_transform=None)


@pytest.mark.parametrize(
    ("Yvar", "error", "message"),
    [
        (torch.full((3, 1), 0.1).double(), ValueError, r"train_Yvar must have shape \(4, 1\)"),
        (torch.full((4, 1), -0.1).double(), ValueError, "train_Yvar holds variances, >= 0"),
        (torch.full((4, 1), 0.1), TypeError, "train_Yvar must have the dtype of train_X"),
    ],
)
@pytest.mark.usefixtures("as_without_shape_checks")
def test_noise_that_makes_no_sense_is_refused(Yvar, error, message):
    X = designs(4, 2)
    with pytest.raises(error, match=message):
        NominalGP(X, values(X), train_Yvar=Yvar)


def test_standardization_can_be_given():
    model = surrogate(MMDGP, unc.Normal(0.2), 2, outcome_transform=Standardize(m=1))
    default = surrogate(MMDGP, unc.Normal(0.2), 2)
    assert_same(moments(model, designs(3, 2, seed=1)), moments(default, designs(3, 2, seed=1)))
