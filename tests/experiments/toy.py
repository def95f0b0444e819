"""A small experiment to try the harness with: every repeat squares its number, slowly.

As a program, it runs itself: ``python toy.py FOLDER SECONDS``.
"""

import sys
import time
from dataclasses import dataclass
from pathlib import Path

from experiments.harness.experiment import Experiment, Task


@dataclass(frozen=True)
class Toy(Experiment):
    name: str = "toy"
    paper: str = "none"
    title: str = "Squares"
    power: int = 2
    seconds: float = 0.0
    bad: tuple[int, ...] = ()
    """Repeats that fail."""
    odd: tuple[int, ...] = ()
    """Repeats that give no number."""

    def tasks(self, repeats):
        return [Task(self.name, "square", i, {"power": self.power}) for i in range(repeats)]

    def run(self, task):
        time.sleep(self.seconds * (task.seed + 1))
        if task.seed in self.bad:
            raise ArithmeticError(f"no square of {task.seed}")
        if task.seed in self.odd:
            return {"value": float("nan")}
        return {"value": task.seed ** task.config["power"]}

    def summary(self, results):
        return str(len(results.each))

    def plot(self, results, folder):
        return []


if __name__ == "__main__":
    from experiments.harness import runner  # PyTorch takes seconds, and only a run needs it
    from experiments.harness.store import Store

    toy = Toy(seconds=float(sys.argv[2]))
    runner.run(toy, toy.tasks(6), Store(Path(sys.argv[1])), jobs=2)
