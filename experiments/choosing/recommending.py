"""Which design to recommend at the end, and whether its interval can be believed."""

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

import airbo
from experiments.choosing.confirming import ratio_of_all, unit
from experiments.choosing.fourth import LONG, SHORT
from experiments.choosing.third import BALANCED
from experiments.harness import table
from experiments.harness.experiment import Experiment, Results, Step, Task
from experiments.harness.statistics import Z_90
from experiments.harness.store import Store
from experiments.paper.optimization import Optimization
from experiments.subjects.methods import start

CASES = {case.name: case for case in (*SHORT, *LONG)}
POLICIES = {"tried": "observed", "anywhere": "anywhere", "default": None}
"""Where to look for the design; by default among those tried, unless another is clearly better."""
MOMENTS = {"half way": 0.5, "at the end": 1.0}


@dataclass(frozen=True)
class Recommending(Experiment):
    """The default after its stored runs of the fourth round: the same data, several answers."""

    name: str = "recommending"
    paper: str = "beyond the paper"
    title: str = "Tried designs, designs anywhere, and the intervals of what is recommended"
    repeats: int = 5

    def tasks(self, repeats: int, quick: bool = False) -> list[Task]:
        """List all cases, the repeats one after another."""
        names = list(CASES)[:1] if quick else list(CASES)
        return [
            Task(self.name, name, seed, {"case": name}, len(MOMENTS))
            for seed in range(repeats)
            for name in names
        ]

    def run(self, task: Task, step: Step) -> dict[str, Any]:
        """Tell an optimizer what the stored run observed, and ask it for the best design."""
        case = CASES[task.config["case"]]
        made = replace(case, methods=(BALANCED,)).tasks(task.seed + 1)[-1]
        found = Store().results([made]).each
        if not found:
            raise ValueError(f"There is no stored run {task.seed} of {case.name}: run 'fourth'.")
        [(_, run)] = found
        result = {}
        for i, (moment, share) in enumerate(MOMENTS.items()):
            n = round(share * len(run["designs"]))
            loop = start(made.config, case.case, made.seed)
            for design, value in zip(run["designs"][:n], run["values"][:n], strict=True):
                loop.tell(design, value)
            result[moment] = answers(case, loop)
            step(i + 1, len(MOMENTS))
        return result

    def summary(self, results: Results) -> str:
        """Compare the policies, and count intervals that hold the truth."""
        rows, scales = [], []
        pairs: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {name: [] for name in POLICIES}
        for name, case in CASES.items():
            each = [r["at the end"]["regrets"] for r in results.of(name)]
            if not each or not case.case.same_use:
                continue
            scales.append(unit(case))
            finals = {p: np.array([r[p] for r in each]) for p in POLICIES}
            for policy, values in finals.items():
                pairs[policy].append((values, finals["tried"]))
            rows.append([case.title, str(len(each)), *(f"{v.mean():.3g}" for v in finals.values())])
        ratios = {p: ratio_of_all(of, scales) for p, of in pairs.items()} if rows else {}
        lines = [
            f"- {p}: {middle:.2f} (95%: {low:.2f} to {high:.2f}) times the regret of the best tried"
            for p, (middle, low, high) in ratios.items()
            if p != "tried"
        ]
        header = ["mean regret at the end", "repeats", *POLICIES]
        return "\n\n".join([table.markdown(header, rows), "\n".join(lines), _coverage(results)])


def answers(case: Optimization, loop: Any) -> dict[str, Any]:
    """Return the regrets of all policies, and how far off the expected value of the default is."""
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", airbo.TooLittleDataWarning)
        for name, policy in POLICIES.items():
            found[name] = loop.optimizer.recommend(policy)
    designs = [list(best.design.values()) for best in found.values()]
    true = case.problem.expected(torch.tensor(designs, dtype=torch.float64)).tolist()
    best = found["default"]
    return {
        "regrets": {p: round(case.regret_of(v), 8) for p, v in zip(found, true, strict=True)},
        "deviations": round((true[-1] - best.mean) / best.std, 4),
    }


def _coverage(results: Results) -> str:
    """Say how often the 90% interval of the recommended design holds the truth."""
    parts = []
    for moment in MOMENTS:
        off = np.array([abs(r[moment]["deviations"]) for _, r in results.each])
        if len(off):
            parts.append(f"{moment} {(off < Z_90).mean():.0%} of {len(off)}")
    return f"90% intervals of the recommended design that hold the truth: {', '.join(parts)}."


RECOMMENDING = Recommending()
