"""Make the pictures of docs/report.md and docs/serve.md: ``python -m experiments.figures.lab``.

Needs Chromium on the PATH.
"""

import json
import math
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

from airbo.lab import Campaign
from experiments.harness.places import IMAGES

SECONDS = 20
"""How long the model of the page may take for the recommendation."""
COMMAND = [sys.executable, "-m", "airbo.lab.cli"]
FILE = """\
name = "Milling, example"
value = { name = "removal rate", unit = "cm³/min" }
n_initial = 8
[parameters.speed]
low = 50.0
high = 200.0
unit = "m/min"
uncertainty = { kind = "normal", std = 8.0 }
[parameters.depth]
low = 0.1
high = 2.0
log = true
unit = "mm"
uncertainty = { kind = "uniform", low = -0.04, high = 0.04 }
[parameters.tool]
choices = ["A", "B"]
"""


def removed(speed: float, depth: float, tool: str) -> float:
    """Return a made-up removal rate: a sharp peak at 160 m/min and a broad one at 105."""
    sharp = 50 * math.exp(-(((speed - 160) / 10) ** 2))
    broad = 40 * math.exp(-(((speed - 105) / 32) ** 2))
    of_depth = math.exp(-((math.log(depth / 0.7)) ** 2))
    return (sharp + broad) * of_depth * (1.0 if tool == "A" else 0.9)


def begin(folder: str, n: int, failed: Collection[int], n_pending: int) -> Path:
    """Do some experiments, some of which fail, and ask for more; return the campaign's file."""
    path = Path(folder) / "campaign.toml"
    path.write_text(FILE, encoding="utf-8")
    rng = random.Random(0)
    with Campaign.open(path) as campaign:
        for i in range(n):
            [e] = campaign.ask()
            speed = rng.gauss(e.design["speed"], 8.0)
            value = removed(speed, e.design["depth"], e.design["tool"]) + rng.gauss(0, 1.0)
            campaign.tell(e.number, None if i in failed else round(value, 1))
        campaign.ask(n_pending)
    return path


def photograph(url: str, name: str, width: int, height: int, patience: str) -> None:
    """Photograph the upper part of a page in Chromium."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        raise SystemExit("There is no Chromium on the PATH to take the picture with.")
    command = [chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    command += [f"--window-size={width},{height}", patience, f"--screenshot={IMAGES / name}", url]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL, timeout=120)


@contextmanager
def serving(path: Path) -> Iterator[str]:
    """Serve a campaign; give the address."""
    command = [*COMMAND, "serve", "--port", "0", "--json", "--file", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield json.loads(server.stdout.readline())["url"]
        finally:
            server.terminate()


def main() -> None:
    """Photograph the report on one campaign, and the page of another one that has just begun."""
    with tempfile.TemporaryDirectory() as folder:
        path, page = begin(folder, 45, (6, 20), 1), Path(folder) / "report.html"
        subprocess.run([*COMMAND, "report", "--file", str(path), "-o", str(page)], check=True)
        photograph(page.as_uri(), "report.png", 1200, 1640, "--virtual-time-budget=10000")
    with tempfile.TemporaryDirectory() as folder, serving(begin(folder, 14, (6,), 2)) as url:
        urlopen(url).read()
        time.sleep(SECONDS)  # the model needs time
        photograph(url, "serve.png", 1280, 1000, "--timeout=3000")


if __name__ == "__main__":
    main()
