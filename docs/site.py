"""What the documentation site takes from outside its folder: results of measurements."""

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
RESULTS = "experiments/results"


def on_files(files: Files, config: Any) -> Files:
    """Add tables and pictures of results to the site."""
    for path in sorted([*(ROOT / RESULTS).glob("*.md"), *(ROOT / RESULTS).glob("*.png")]):
        where = f"{RESULTS}/{path.name}"
        files.append(File.generated(config, where, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Let links to results lead to where they are on the site."""
    return markdown.replace(f"](../{RESULTS}/", f"]({RESULTS}/")
