"""Optimization step by step, the same for our optimizer and for others.

Every method is told the same first designs and values, then asks and is told in turns.
"""

import warnings
from typing import Any, Literal, Protocol

import numpy as np
import optuna
import torch
from botorch.acquisition.analytic import LogExpectedImprovement, PosteriorMean
from botorch.acquisition.logei import qLogNoisyExpectedImprovement
from botorch.acquisition.objective import ExpectationPosteriorTransform
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms.input import InputPerturbation
from botorch.optim.optimize import optimize_acqf
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor

import airbo
from airbo.measures import Measure
from airbo.seeds import reproducible, stream, stream_seed
from airbo.uncertainty import Exact, base_draws
from experiments.subjects.cases import Case, Design

N_RESTARTS, N_RAW = 10, 512
"""Of searches with BoTorch, as in its tutorial of closed loops."""
N_PERTURBATIONS = 32


Policy = Literal["observed", "anywhere"]


class Loop(Protocol):
    """Proposes designs, takes observed values, and names the design that it would use."""

    def ask(self) -> Design:
        """Propose a design."""

    def tell(self, design: Design, value: float, executed: Design | None = None) -> None:
        """Report an observed value, and where the design landed if that was logged."""

    def recommend(self) -> Design:
        """Return the design to use."""

    def predict(self, X: Tensor) -> tuple[np.ndarray, np.ndarray] | None:
        """Return mean and deviation of the expected value of designs in use, if it can."""
        return None


class AirboLoop:
    """``airbo.Optimizer``: as shipped, or with another surrogate or acquisition."""

    def __init__(
        self,
        case: Case,
        repeat: int,
        surrogate: Any = "default",
        acquisition: Any = "default",
        knows: bool = True,
        policy: Policy | None = None,
        measure: Measure | None = None,
    ) -> None:
        """Start without observations.

        Args:
            case: What is optimized.
            repeat: The number of the repeat, which seeds the optimizer's own chance.
            surrogate: As of ``Optimizer``.
            acquisition: As of ``Optimizer``.
            knows: Whether it is told the uncertainties; otherwise it takes all designs for exact.
            policy: As of ``recommend``; None: as shipped.
            measure: As of ``Optimizer``.
        """
        deployment = None if case.same_use else case.problem.uncertainty
        self.optimizer = airbo.Optimizer(
            case.space,
            case.tried_under if knows else Exact(),
            case.problem.direction,
            surrogate,
            acquisition,
            seed=stream_seed(case.seed(repeat), "optimizer"),
            deployment=deployment if knows else None,
            n_initial=1,
            measure=measure,
        )
        self.policy = policy

    def ask(self) -> Design:
        return list(self.optimizer.ask().values())

    def tell(self, design: Design, value: float, executed: Design | None = None) -> None:
        landed = None if executed is None else self._named(executed)
        self.optimizer.tell(self._named(design), value, executed=landed)

    def recommend(self, policy: Policy | None = None) -> Design:
        """Return the design to use, by another policy if one is given."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", airbo.TooLittleDataWarning)
            chosen = self.optimizer.recommend(policy=policy or self.policy)
        return list(chosen.design.values())

    def predict(self, X: Tensor) -> tuple[np.ndarray, np.ndarray]:
        table = self.optimizer.predict([self._named(row) for row in X.tolist()])
        return table["mean"].to_numpy(), table["std"].to_numpy()

    def _named(self, design: Design) -> dict[str, float]:
        return dict(zip(self.optimizer.space.names, design, strict=True))


class BoTorchLoop:
    """``SingleTaskGP`` on the designs and ``qLogNoisyExpectedImprovement``, as documented."""

    def __init__(self, case: Case, repeat: int) -> None:
        """Start without observations."""
        self.case, self.seed = case, stream_seed(case.seed(repeat), "optimizer")
        self.low, high = case.problem.bounds
        self.width = high - self.low
        self.cube = torch.stack([torch.zeros_like(self.low), torch.ones_like(self.low)])
        self.designs: list[Design] = []
        self.values: list[float] = []
        self.model: SingleTaskGP | None = None

    def ask(self) -> Design:
        with reproducible(self.seed, "ask", len(self.values)), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self._to_user(self._best(self._acquisition()))

    def tell(self, design: Design, value: float, executed: Design | None = None) -> None:
        self.designs.append(design if executed is None else executed)
        self.values.append(self.case.sign * value)
        self.model = None

    def recommend(self) -> Design:
        """Return the design with the best mean: of those tried, or of all if use is different."""
        with reproducible(self.seed, "recommend"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mean = PosteriorMean(self._fitted(), posterior_transform=self._in_use())
            if not self.case.same_use:
                return self._to_user(self._best(mean))
            with torch.no_grad():
                best = int(mean(self._to_cube(self.designs).unsqueeze(-2)).argmax())
        return self.designs[best]

    def predict(self, X: Tensor) -> tuple[np.ndarray, np.ndarray] | None:
        Z, model = self._to_cube(X).unsqueeze(-2), self._fitted()
        with torch.no_grad():
            posterior = model.posterior(Z, posterior_transform=self._in_use())
        mean, std = posterior.mean.flatten(), posterior.variance.flatten().sqrt()
        return self.case.sign * mean.numpy(), std.numpy()

    def _acquisition(self) -> Any:
        X = self._to_cube(self.designs)
        return qLogNoisyExpectedImprovement(self._fitted(), X, prune_baseline=True)

    def _fitted(self) -> SingleTaskGP:
        if self.model is None:
            Y = torch.tensor(self.values, dtype=torch.float64).unsqueeze(-1)
            self.model = self._build(self._to_cube(self.designs), Y)
            fit_gpytorch_mll(ExactMarginalLogLikelihood(self.model.likelihood, self.model))
        return self.model

    def _build(self, Z: Tensor, Y: Tensor) -> SingleTaskGP:
        return SingleTaskGP(Z, Y)

    def _in_use(self) -> ExpectationPosteriorTransform | None:
        """Turn a prediction at designs into a prediction of their expected value in use."""
        return None

    def _best(self, function: Any) -> Tensor:
        Z, _ = optimize_acqf(function, self.cube, q=1, num_restarts=N_RESTARTS, raw_samples=N_RAW)
        return Z.detach()

    def _to_cube(self, designs: Any) -> Tensor:
        return (torch.as_tensor(designs, dtype=torch.float64) - self.low) / self.width

    def _to_user(self, Z: Tensor) -> Design:
        design: Design = (self.low + self.width * Z)[0].tolist()
        return design


class StandardLoop(BoTorchLoop):
    """The standard process of the study of slips: it uses the design with the best value."""

    def recommend(self) -> Design:
        return self.designs[int(np.argmax(self.values))]


class PerturbedLoop(BoTorchLoop):
    """``SingleTaskGP`` with ``InputPerturbation``: LogEI of the mean over perturbations.

    The model treats the designs as if they had been executed. Improvement is over the best
    predicted mean of a design tried. Noisy expected improvement, which compares with all perturbed
    inputs of all designs at once, takes 24 s of processor time per ask after 25 experiments.
    """

    n_perturbations = N_PERTURBATIONS

    def _acquisition(self) -> Any:
        model, transform = self._fitted(), self._in_use()
        with torch.no_grad():
            mean = PosteriorMean(model, posterior_transform=transform)
            best = mean(self._to_cube(self.designs).unsqueeze(-2)).max()
        return LogExpectedImprovement(model, best, posterior_transform=transform)

    def _build(self, Z: Tensor, Y: Tensor) -> SingleTaskGP:
        return SingleTaskGP(Z, Y, input_transform=InputPerturbation(self._perturbations))

    def _in_use(self) -> ExpectationPosteriorTransform:
        return ExpectationPosteriorTransform(self.n_perturbations)

    def _perturbations(self, Z: Tensor) -> Tensor:
        """Return deviations of executed inputs from their designs, in the unit cube."""
        uncertainty = self.case.problem.uncertainty
        base = base_draws(self.n_perturbations, uncertainty.n_base(len(self.low)))
        X = self.low + self.width * Z
        return (uncertainty.perturb(X, base) - X.unsqueeze(-2)) / self.width


class OptunaLoop(Loop):
    """Optuna's ``GPSampler``; the answer is the best trial."""

    def __init__(self, case: Case, repeat: int) -> None:
        """Start an empty study."""
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        seed = stream_seed(case.seed(repeat), "optimizer") % 2**32
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            sampler = optuna.samplers.GPSampler(seed=seed, n_startup_trials=1)
        self.trial: optuna.Trial | None = None
        self.study = optuna.create_study(direction=case.problem.direction, sampler=sampler)
        low, high = case.problem.bounds.tolist()
        self.distributions: dict[str, Any] = {
            f"x{i}": optuna.distributions.FloatDistribution(*ends)
            for i, ends in enumerate(zip(low, high, strict=True))
        }

    def ask(self) -> Design:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.trial = self.study.ask(self.distributions)
        return list(self.trial.params.values())

    def tell(self, design: Design, value: float, executed: Design | None = None) -> None:
        if self.trial is not None:
            self.study.tell(self.trial, value)
            self.trial = None
            return
        params = dict(zip(self.distributions, design, strict=True))
        self.study.add_trial(
            optuna.trial.create_trial(params=params, distributions=self.distributions, value=value)
        )

    def recommend(self) -> Design:
        return [self.study.best_params[name] for name in self.distributions]


class RandomLoop(Loop):
    """Uniform random designs; the answer is the one with the best value."""

    def __init__(self, case: Case, repeat: int) -> None:
        """Start without observations."""
        self.case, self.seed = case, stream_seed(case.seed(repeat), "optimizer")
        self.tried: list[tuple[float, Design]] = []

    def ask(self) -> Design:
        random = stream(self.seed, "ask", len(self.tried))
        [design] = self.case.designs(torch.from_numpy(random.random((1, self.case.d)))).tolist()
        return list(design)

    def tell(self, design: Design, value: float, executed: Design | None = None) -> None:
        self.tried.append((self.case.sign * value, design))

    def recommend(self) -> Design:
        return max(self.tried)[1]
