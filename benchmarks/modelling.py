"""How well surrogates predict expected values: ``python -m benchmarks.modelling``."""

import argparse
from statistics import mean, stdev

import torch
from botorch import fit_gpytorch_mll
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor

from airbo.models import ERBFGP, MMDGP, SKLGP, UGP, ExpectationGP, NominalGP
from airbo.problems import RKHS
from benchmarks import record, table
from benchmarks.cases import CASES
from benchmarks.run import progress

SURROGATES = (NominalGP, MMDGP, UGP, ERBFGP, SKLGP, ExpectationGP)
UNCERTAINTIES = {
    c.name: c.uncertainty for c in CASES if c.name in ("normal", "varying beta", "step chi²")
}
N_OBSERVATIONS = (10, 30)


def observe(problem: RKHS, n: int, seed: int) -> tuple[Tensor, Tensor]:
    """Draw designs uniformly at random and run one experiment at each."""
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(n, 1, generator=generator, dtype=torch.float64)
    return X, problem.observe(X, generator).unsqueeze(-1)


def fitted(surrogate: type, problem: RKHS, X: Tensor, Y: Tensor) -> MMDGP:
    model = surrogate(X, Y, problem.uncertainty, problem.bounds)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return model


def score(model: MMDGP, expected: Tensor) -> tuple[float, float]:
    """Return the RMSE against the true expectation and how often the 95% band holds it."""
    with torch.no_grad():
        posterior = model.posterior(grid())
        error = posterior.mean.squeeze(-1) - expected
        inside = error.abs() <= 1.96 * posterior.variance.squeeze(-1).sqrt()
    return error.square().mean().sqrt().item(), inside.double().mean().item()


def grid() -> Tensor:
    return torch.linspace(0, 1, 401, dtype=torch.float64).unsqueeze(-1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=30)
    n_seeds = parser.parse_args().seeds
    torch.set_num_threads(1)
    where = record.provenance()

    settings = [(name, n) for name in UNCERTAINTIES for n in N_OBSERVATIONS]
    scores: dict[str, dict[str, list[tuple[float, float]]]] = {}
    with progress() as bar:
        task = bar.add_task("", total=len(settings) * n_seeds)
        for name, n in settings:
            problem = RKHS(UNCERTAINTIES[name])
            expected = problem.expected(grid())
            by_surrogate = scores[f"{name}, n = {n}"] = {s.__name__: [] for s in SURROGATES}
            for seed in range(n_seeds):
                X, Y = observe(problem, n, seed)
                for surrogate in SURROGATES:
                    result = score(fitted(surrogate, problem, X, Y), expected)
                    by_surrogate[surrogate.__name__].append(result)
                bar.update(task, advance=1, description=f"{name}, n = {n}")

    path = record.store("modelling", where, {"scores": scores})
    text = report(scores, where)
    record.publish(path, text)


def report(
    scores: dict[str, dict[str, list[tuple[float, float]]]], where: dict[str, object]
) -> str:
    names = [s.__name__ for s in SURROGATES]
    rows = [
        [label, *(_cell(by_surrogate[n]) for n in names)] for label, by_surrogate in scores.items()
    ]
    n_seeds = len(next(iter(next(iter(scores.values())).values())))
    return (
        "# Predicting expected values\n\n"
        "RMSE against the true expectation of the RKHS function: mean ± standard error over "
        f"{n_seeds} seeds; in brackets, how much of [0, 1] the 95% band covers.\n\n"
        f"{table.markdown(['', *names], rows)}\n\n{record.describe(where)}\n"
    )


def _cell(results: list[tuple[float, float]]) -> str:
    rmse, covered = ([r[i] for r in results] for i in (0, 1))
    return f"{mean(rmse):.2f} ± {stdev(rmse) / len(rmse) ** 0.5:.2f} ({mean(covered):.0%})"


if __name__ == "__main__":
    main()
