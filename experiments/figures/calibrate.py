"""The made-up log and the picture of docs/calibrate.md."""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

N = 600


def write_log(path: Path) -> None:
    """Write a made-up log of a mixer: semicolons and decimal commas, as a spreadsheet does."""
    rng = np.random.default_rng(3)
    temp = np.repeat(rng.uniform(60, 120, N // 10), 10)
    flow, pressure = rng.uniform(5, 50, N), rng.uniform(1, 6, N)
    columns = {
        "temp_sp [°C]": (temp, 1),
        "temp_pv [°C]": (temp + 1.4 + rng.normal(0, 0.8, N), 2),
        "flow_sp": (flow, 2),
        "flow_pv": (flow * (1 + rng.normal(0, 0.04, N)), 2),
        "pressure_sp": (pressure, 2),
        "pressure_pv": (
            pressure + np.where(rng.random(N) < 0.3, -0.12, 0.03) + rng.normal(0, 0.015, N),
            3,
        ),
    }
    columns["flow_pv"][0][[40, 301]] = [180, 140]  # two readings that went wrong
    lines = [";".join(["row", *columns])]
    for i in range(N):
        cells = [f"{values[i]:.{digits}f}".replace(".", ",") for values, digits in columns.values()]
        lines.append(";".join([str(i + 1), *cells]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8-sig")


def draw_calibrate(images: Path) -> None:
    """Write the log, and let the command draw the picture and print the rest."""
    with tempfile.TemporaryDirectory() as folder:
        log, picture = Path(folder) / "mixer.csv", images / "calibrate.png"
        write_log(log)
        command = [sys.executable, "-m", "airbo.lab.cli", "calibrate", str(log), "-o", str(picture)]
        subprocess.run(command, check=True)
