"""Make the example of docs/report.md: ``python -m experiments.figures.report [report.html]``.

Needs Chromium on the PATH for the picture.
"""

import math
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import airbo
from airbo import uncertainty as unc
from airbo.lab.report import write_report
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


def photograph(url: str, path: Path, width: int, height: int, patience: str) -> None:
    """Photograph the upper part of a page in Chromium."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        raise SystemExit("There is no Chromium on the PATH to take the picture with.")
    command = [chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    command += [f"--window-size={width},{height}", patience, f"--screenshot={path}", url]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL, timeout=120)


def main() -> None:
    """Write the report and its picture."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(folder) / "report.html"
        write_report(
            experiments(),
            path,
            title="Milling, example",
            units={"removal rate": "cm³/min"},
        )
        url = path.resolve().as_uri()
        photograph(url, IMAGE, WIDTH, HEIGHT, "--virtual-time-budget=10000")


if __name__ == "__main__":
    main()
