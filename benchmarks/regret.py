"""How good the recommended design is after the evaluations one can afford.

    python -m benchmarks.regret --seeds 12 --jobs 2

Every surrogate sees the same initial designs, and the same draws of executed inputs, per seed. A
finished run is written at once; started again, the program goes on where it was.
"""

import argparse
import json
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from botorch.acquisition.analytic import UpperConfidenceBound
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.optim.optimize import optimize_acqf
from gpytorch.mlls import ExactMarginalLogLikelihood
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

import airbo
from airbo.optimizer.search import N_RAW, N_RESTARTS
from airbo.problems import RKHS, DoublePeak, Problem, Wave
from airbo.uncertainty import Exact, InputUncertainty
from benchmarks import record
from benchmarks.statistics import interval_of_mean

RESULTS = record.RESULTS / "regret"
N_INITIAL, N_STEPS, EVERY = 10, 50, 5
ALWAYS = ("mmd", "nominal")


@dataclass(frozen=True)
class Case:
    """A problem, what experiments are made under, and what the answer is used under."""

    problem: Problem
    experiments: InputUncertainty | None = None
    """None: as the problem says."""
    surrogates: tuple[str, ...] = ALWAYS

    @property
    def under(self) -> InputUncertainty:
        return self.experiments or self.problem.uncertainty


CASES = {
    "double-peak": Case(DoublePeak()),
    "rkhs": Case(RKHS()),
    "wave (P varies with x)": Case(Wave(), surrogates=(*ALWAYS, "ugp")),
    "double-peak (exact now, beta later)": Case(DoublePeak(), Exact(), surrogates=(*ALWAYS, "ugp")),
    "wave (exact now, varying later)": Case(Wave(), Exact(), surrogates=(*ALWAYS, "ugp")),
}


def observe(case: Case, x: float, generator: torch.Generator) -> float:
    """Run one experiment."""
    X = torch.tensor([[x]], dtype=torch.float64)
    base = torch.rand(1, max(1, case.under.n_base(1)), generator=generator, dtype=torch.float64)
    return case.problem(case.under.perturb(X, base)[0]).item()


def run(name: str, surrogate: str, seed: int) -> dict[str, Any]:
    """Optimize once and record the regret of the recommendation after every fifth evaluation."""
    torch.set_num_threads(1)
    where = record.provenance()
    case = CASES[name]
    low, high = case.problem.bounds.flatten().tolist()
    optimizer = airbo.Optimizer(
        airbo.Space({"x": (low, high)}),
        case.experiments if case.experiments is not None else case.problem.uncertainty,
        surrogate=surrogate,
        acquisition="ucb",
        deployment=case.problem.uncertainty,
        seed=seed,
        n_initial=N_INITIAL,
        initial="random",
    )
    draws = torch.Generator().manual_seed(seed)
    regrets, seconds = [], []
    for _ in range(N_INITIAL + N_STEPS):
        start = time.process_time()
        design = optimizer.ask()
        seconds.append(time.process_time() - start)
        optimizer.tell(design, observe(case, design["x"], draws))
        if len(seconds) >= N_INITIAL and len(seconds) % EVERY == 0:
            x = _recommended(optimizer)
            regrets.append(case.problem.regret(torch.tensor([[x]], dtype=torch.float64)).item())
    return {
        "case": name,
        "surrogate": surrogate,
        "seed": seed,
        "regrets": regrets,
        "seconds_per_ask": float(np.median(seconds[N_INITIAL:])),
        "plain_seconds_per_ask": plain_ask_seconds(optimizer),
        "provenance": where,
    }


def _recommended(optimizer: airbo.Optimizer) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", airbo.TooLittleDataWarning)
        return float(optimizer.recommend().design["x"])


def plain_ask_seconds(optimizer: airbo.Optimizer) -> float:
    """Return the processor time of the same step with a plain BoTorch SingleTaskGP."""
    table = optimizer.observations
    seconds = []
    for n in (20, 40, 60):
        X = torch.tensor(table[["x"]].to_numpy()[:n])
        Y = torch.tensor(table[["value"]].to_numpy()[:n])
        start = time.process_time()
        model = SingleTaskGP(X, Y)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        bounds = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
        acquisition = UpperConfidenceBound(model, beta=4.0)
        optimize_acqf(acquisition, bounds, q=1, num_restarts=N_RESTARTS, raw_samples=N_RAW)
        seconds.append(time.process_time() - start)
    return float(np.median(seconds))


def file_of(name: str, surrogate: str, seed: int) -> Path:
    slug = name.replace(" ", "-").replace("(", "").replace(")", "").replace(",", "")
    return RESULTS / f"{slug}_{surrogate}_{seed}.json"


def write(result: dict[str, Any]) -> None:
    """Write a finished run in one piece."""
    path = file_of(result["case"], result["surrogate"], result["seed"])
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(result))
    part.rename(path)


def table_of(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Summarize the runs of every case and surrogate."""
    rows = []
    for case in CASES:
        for surrogate in CASES[case].surrogates:
            mine = [r for r in results if (r["case"], r["surrogate"]) == (case, surrogate)]
            if not mine:
                continue
            curves = np.array([r["regrets"] for r in mine])
            low, high = interval_of_mean(curves[:, -1])
            rows.append(
                {
                    "case": case,
                    "surrogate": surrogate,
                    "seeds": len(mine),
                    "regret at 10": curves[:, 0].mean(),
                    "at 35": curves[:, N_STEPS // EVERY // 2].mean(),
                    "at 60: mean": curves[:, -1].mean(),
                    "95% interval": f"{low:.3f} to {high:.3f}",
                    "median": float(np.median(curves[:, -1])),
                    "seconds per ask": float(np.median([r["seconds_per_ask"] for r in mine])),
                    "times plain loop": float(
                        np.median([r["seconds_per_ask"] / r["plain_seconds_per_ask"] for r in mine])
                    ),
                }
            )
    return rows


def markdown(rows: list[dict[str, Any]]) -> str:
    """Write the summary as a Markdown table."""
    head = list(rows[0])
    lines = ["| " + " | ".join(head) + " |", "| " + " | ".join("---" for _ in head) + " |"]
    lines += ["| " + " | ".join(_cell(row[h]) for h in head) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _cell(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--table", action="store_true", help="run nothing; show what there is")
    args = parser.parse_args()
    wanted = [
        (name, surrogate, seed)
        for name, case in CASES.items()
        for seed in range(args.seeds)
        for surrogate in case.surrogates
    ]
    missing = [key for key in wanted if not args.table and not file_of(*key).exists()]
    columns = (TextColumn("runs"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns) as progress, ProcessPoolExecutor(args.jobs) as pool:
        task = progress.add_task(
            "runs", total=len(wanted), completed=sum(file_of(*key).exists() for key in wanted)
        )
        for future in as_completed([pool.submit(run, *key) for key in missing]):
            write(future.result())
            progress.advance(task)
    files = [path for path in (file_of(*key) for key in wanted) if path.exists()]
    rows = table_of([json.loads(path.read_text()) for path in files])
    text = markdown(rows)
    (RESULTS.parent / "regret.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
