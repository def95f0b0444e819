"""How many quadrature nodes the default needs."""

from typing import Any

from airbo.embeddings import Quadrature
from experiments.harness import table
from experiments.harness.experiment import Experiment, Results, Step, Task
from experiments.speed.accuracy import DOUBT, references
from experiments.subjects.uncertainties import BY_NAME

N_ATOMS = (3, 6, 12, 24, 48)
CASES = ("beta", "varying beta", "step chi²", "ring + normal")
"""Gaussians and their mixtures need no nodes."""


class Nodes(Experiment):
    """Kernel errors for more and more nodes, uncertainty by uncertainty."""

    name = "quadrature-nodes"
    paper = "beyond the paper"
    title = "Kernel error against quadrature nodes"
    repeats = 1

    def tasks(self, repeats: int, quick: bool = False) -> list[Task]:
        """List the uncertainties."""
        size = {"n_pairs": 2**13 if quick else 2**17, "n_atoms": list(N_ATOMS)}
        return [Task(self.name, case, 0, {"case": case, **size}) for case in CASES]

    def run(self, task: Task, step: Step) -> dict[str, Any]:
        """Return the largest error by length scale and number of nodes."""
        found: dict[str, dict[str, float]] = {}
        case, n_pairs = BY_NAME[task.config["case"]], task.config["n_pairs"]
        for reference in references([case], n_pairs, lambda: step(1, 1)):
            errors = found[reference.label] = {}
            for n in task.config["n_atoms"]:
                errors[f"n_atoms = {n}"] = reference.error(Quadrature(n))
            errors[DOUBT] = reference.doubt
        return found

    def summary(self, results: Results) -> str:
        """Tabulate the errors."""
        errors = {label: found for _, result in results for label, found in result.items()}
        names = list(next(iter(errors.values())))
        rows = [[name, *(table.error(found[name]) for found in errors.values())] for name in names]
        return (
            "Largest |exp(-MMD²) - truth| between eight designs. Gaussians and their mixtures need "
            f"no nodes and are left out.\n\n{table.markdown(['', *errors], rows)}"
        )


NODES = Nodes()
