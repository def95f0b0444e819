"""Where results and pictures are kept."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "experiments" / "results"
DOCS = ROOT / "docs"
IMAGES = DOCS / "images"
