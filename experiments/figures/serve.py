"""Make the picture of docs/serve.md: ``python -m experiments.figures.serve [PNG]``.

Needs Chromium on the PATH.
"""

import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

from airbo.lab import Campaign
from experiments.figures.report import photograph, removed
from experiments.harness.places import IMAGES

IMAGE = IMAGES / "serve.png"
WIDTH, HEIGHT = 1280, 1000
SECONDS = 20
"""How long the model may take for the recommendation."""
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


def begin(path: Path) -> None:
    """Do some experiments, and ask for two more."""
    path.write_text(FILE, encoding="utf-8")
    rng = random.Random(0)
    with Campaign.open(path) as campaign:
        for i in range(14):
            [e] = campaign.ask()
            speed = rng.gauss(e.design["speed"], 8.0)
            value = removed(speed, e.design["depth"], e.design["tool"]) + rng.gauss(0, 1.0)
            campaign.tell(e.number, None if i == 6 else round(value, 1))
        campaign.ask(2)


@contextmanager
def serving(path: Path) -> Iterator[str]:
    """Serve a campaign; give the address."""
    command = [sys.executable, "-m", "airbo.lab.cli", "serve", "--port", "0", "--json"]
    command += ["--file", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield json.loads(server.stdout.readline())["url"]
        finally:
            server.terminate()


def main() -> None:
    """Begin a campaign, serve it, and photograph the page."""
    image = Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGE
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "campaign.toml"
        begin(path)
        with serving(path) as url:
            urlopen(url).read()
            time.sleep(SECONDS)  # the model needs time
            photograph(url, image.resolve(), WIDTH, HEIGHT, "--timeout=3000")


if __name__ == "__main__":
    main()
