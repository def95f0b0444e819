"""Finds the best design of every case, by a search much stronger than any method's."""

import json
from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize

from airbo.uncertainty import base_draws
from experiments.subjects.cases import CASES, TRUTHS, Case, slip_case
from experiments.subjects.landscapes import LANDSCAPES

N_TRIED, N_CLIMBED = 2**11, 8


def find_truth(case: Case) -> dict[str, Any]:
    """Search the whole box from many designs; also average over the box."""
    low, high = case.problem.bounds
    X = case.designs(base_draws(N_TRIED, case.d))
    values = case.sign * torch.cat([case.expected(part) for part in X.split(256)])
    ends = list(zip(low.tolist(), high.tolist(), strict=True))

    def depth(x: np.ndarray) -> float:
        return -case.sign * float(case.expected(x[None]))

    starts = [X[i].numpy() for i in values.argsort(descending=True)[:N_CLIMBED]]
    starts.append(case.problem.robust_optimum.design.numpy())
    found = [
        minimize(depth, start, method="Nelder-Mead", bounds=ends, options={"maxfev": 200 * case.d})
        for start in starts
    ]
    best = min(found, key=lambda result: result.fun)
    return {
        "design": [float(f"{v:.7g}") for v in best.x],
        "value": float(f"{-case.sign * best.fun:.9g}"),
        "mean": float(f"{case.sign * values.mean().item():.6g}"),
    }


def slip_truth(name: str) -> dict[str, Any]:
    """Return the published optimum of a landscape, and its mean over the box."""
    case = slip_case(name, 0.0)
    mean = case.problem(case.designs(base_draws(2**14, case.d))).mean().item()
    return {"design": [], "value": LANDSCAPES[name].best, "mean": float(f"{mean:.6g}")}


def write(names: list[str] | None = None) -> dict[str, dict[str, Any]]:
    """Work out the truths of some cases, or of all, and keep the others."""
    kept = json.loads(TRUTHS.read_text(encoding="utf-8")) if TRUTHS.exists() else {}
    kept |= {f"{name}-slips": slip_truth(name) for name in LANDSCAPES}
    for name in names or CASES:
        kept[name] = find_truth(CASES[name])
        lines = [f"  {json.dumps(n)}: {json.dumps(kept[n])}" for n in sorted(kept)]
        TRUTHS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    return kept
