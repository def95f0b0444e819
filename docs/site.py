"""What the documentation site takes from outside its folder: results of measurements."""

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
RESULTS = ("benchmarks/results", "experiments/results")


def on_files(files: Files, config: Any) -> Files:
    """Add tables and pictures of results to the site."""
    for folder in RESULTS:
        for path in sorted([*(ROOT / folder).glob("*.md"), *(ROOT / folder).glob("*.png")]):
            where = f"{folder}/{path.name}"
            files.append(File.generated(config, where, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Let links to results lead to where they are on the site."""
    for folder in RESULTS:
        markdown = markdown.replace(f"](../{folder}/", f"]({folder}/")
    return markdown
