"""Make the example of docs/report.md: ``python -m experiments.figures.report [report.html]``.

Needs Chromium on the PATH for the picture. With ``--precision`` it prints what three surrogates say
of halved deviations, beside the truth.
"""

import math
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

import airbo
from airbo import uncertainty as unc
from airbo.lab.report import write_report
from airbo.lab.report.beliefs import Beliefs
from experiments.harness.places import IMAGES

IMAGE = IMAGES / "report.png"
SEED = 0
N_EXPERIMENTS = 45
WIDTH, HEIGHT = 1200, 1640

SPACE = airbo.Space(
    {
        "speed": airbo.Float(50.0, 200.0, unit="m/min"),
        "depth": airbo.Float(0.1, 2.0, log=True, unit="mm"),
        "tool": ["A", "B"],
    }
)
MISSES = {"speed": unc.Normal(8.0), "depth": unc.Uniform(-0.04, 0.04)}


def removed(speed: float, depth: float, tool: str) -> float:
    """Return a made-up removal rate: a sharp peak at 160 m/min and a broad one at 105."""
    sharp = 50 * math.exp(-(((speed - 160) / 10) ** 2))
    broad = 40 * math.exp(-(((speed - 105) / 32) ** 2))
    return (
        (sharp + broad) * math.exp(-((math.log(depth / 0.7)) ** 2)) * (1.0 if tool == "A" else 0.9)
    )


def experiments() -> airbo.Optimizer:
    """Run the experiments, two of which fail, and ask for one more."""
    rng = random.Random(SEED)
    wanted = {"removal rate": airbo.Maximize()}
    optimizer = airbo.Optimizer(SPACE, MISSES, outcomes=wanted, seed=SEED)
    for i in range(N_EXPERIMENTS):
        design = optimizer.ask()
        speed = rng.gauss(design["speed"], 8.0)
        depth = design["depth"] + rng.uniform(-0.04, 0.04)
        value = removed(speed, depth, design["tool"]) + rng.gauss(0, 1.0)
        optimizer.tell(design, None if i in (6, 20) else {"removal rate": value})
    optimizer.ask()
    return optimizer


def take_picture(page: Path) -> None:
    """Photograph the upper part of the page."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        raise SystemExit("There is no Chromium on the PATH to take the picture with.")
    command = [chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    command += [f"--window-size={WIDTH},{HEIGHT}", "--virtual-time-budget=10000"]
    command += [f"--screenshot={IMAGE}", page.resolve().as_uri()]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL, timeout=120)


def two_peaks(x: float) -> float:
    """Return a function with a sharp and a broad peak."""
    return math.exp(-(((x - 0.3) / 0.08) ** 2)) + 0.7 * math.exp(-(((x - 0.7) / 0.2) ** 2))


def compare_surrogates(std: float = 0.06, n: int = 40) -> None:
    """Print the change that halved deviations make, as believed and as it is."""
    generator = random.Random(1)
    draws = [generator.gauss(0, 1) for _ in range(20_000)]
    for surrogate in ("mmd", "ugp", "expectation"):
        for seed in range(3):
            rng = random.Random(seed)
            space, P = airbo.Space({"x": (0.0, 1.0)}), {"x": unc.Normal(std)}
            optimizer = airbo.Optimizer(space, P, surrogate=surrogate, seed=seed, n_initial=6)
            for _ in range(n):
                design = optimizer.ask()
                optimizer.tell(design, two_peaks(rng.gauss(design["x"], std)))
            halved = optimizer.uncertainty.scaled(0.5)
            for x in (optimizer.recommend().design["x"], 0.3):
                X = torch.full((2, 1), x, dtype=torch.float64)
                both = [optimizer.uncertainty, halved]
                _, change = Beliefs.of(optimizer.outcome_model()).compare(X, both)
                before, after = (
                    sum(two_peaks(x + factor * std * z) for z in draws) / len(draws)
                    for factor in (1.0, 0.5)
                )
                print(
                    f"{surrogate} seed {seed} x = {x:.2f}: {change.mean:+.3f} ± {change.std:.3f}, "
                    f"truth {after - before:+.3f}"
                )


def main() -> None:
    """Write the report and its picture, or compare surrogates."""
    if "--precision" in sys.argv:
        compare_surrogates()
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(folder) / "report.html"
        write_report(
            experiments(),
            path,
            title="Milling, example",
            units={"removal rate": "cm³/min"},
            progress=True,
        )
        take_picture(path)


if __name__ == "__main__":
    main()
