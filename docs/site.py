"""What the documentation site takes from outside its folder: results of the benchmarks."""

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"


def on_files(files: Files, config: Any) -> Files:
    """Add tables and pictures of the benchmarks to the site."""
    for path in sorted([*RESULTS.glob("*.md"), *RESULTS.glob("*.png")]):
        where = f"benchmarks/results/{path.name}"
        files.append(File.generated(config, where, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Let links to the benchmarks lead to where they are on the site."""
    return markdown.replace("](../benchmarks/results/", "](benchmarks/results/")
