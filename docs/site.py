"""What the documentation site adds to its pages: results, formulas as MathML, llms.txt.

Results of measurements are taken from outside the folder. Formulas become MathML when the site is
built, which browsers draw without a script, a font or a network.
"""

import html
import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from properdocs.exceptions import PluginError
from properdocs.structure.files import File, Files
from properdocs.structure.nav import Navigation, Section

ROOT = Path(__file__).parents[1]
RESULTS = "experiments/results"
FORMULA = re.compile(r'<(span|div) class="arithmatex">\s*\\([(\[])(.*?)\\[)\]]\s*</\1>', re.DOTALL)
QUOTED = re.compile(r"<(pre|code|script|style|math)\b.*?</\1>", re.DOTALL)
UNKNOWN = re.compile(r"<m[a-z]+>\\[^<]*")  # a command that the converter does not know
LATEX = re.compile(r"\$[^$<>]+\$|\\\(|\\\[|:math:|\.\. math::")


def on_files(files: Files, config: Any) -> Files:
    """Add tables and pictures of results to the site."""
    for path in sorted([*(ROOT / RESULTS).glob("*.md"), *(ROOT / RESULTS).glob("*.png")]):
        where = f"{RESULTS}/{path.name}"
        files.append(File.generated(config, where, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Let links to results lead to where they are on the site."""
    return markdown.replace(f"](../{RESULTS}/", f"]({RESULTS}/")


def on_page_content(content: str, page: Any, **_: Any) -> str:
    """Draw all formulas, and refuse a page on which the source of one is left."""
    content = FORMULA.sub(_drawn, content)
    left = LATEX.search(QUOTED.sub("", content)) or UNKNOWN.search(content)
    if left is not None:
        raise PluginError(f"{page.file.src_uri} shows the source of a formula: {left[0]}")
    return content


def _drawn(found: re.Match[str]) -> str:
    return convert(html.unescape(found[3]), display="block" if found[2] == "[" else "inline")


def on_nav(nav: Navigation, config: Any, files: Files) -> Navigation:
    """Remember the order of the pages."""
    config.extra["pages"] = list(_chapters(nav.items, ()))
    return nav


def _chapters(items: list[Any], above: tuple[str, ...]) -> Any:
    for item in items:
        if isinstance(item, Section):
            yield from _chapters(item.children, (*above, item.title))
        else:
            yield above, item


def on_post_build(config: Any) -> None:
    """Write llms.txt: what a program should read, one line per page."""
    lines, chapter = [f"# {config.site_name}", "", f"> {config.site_description}"], ("",)
    for above, page in config.extra["pages"]:
        if above[:1] != chapter:
            chapter = above[:1]
            lines += ["", f"## {chapter[0] if chapter else 'Start'}", ""]
        about = _first_sentence(page.markdown or "")
        lines.append(f"- [{page.title}]({page.url or 'index.html'}){': ' if about else ''}{about}")
    Path(config.site_dir, "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _first_sentence(markdown: str) -> str:
    """Return the first sentence of the first paragraph that is text."""
    for paragraph in re.split(r"\n\s*\n", markdown):
        if not re.match(r"\s*(#|!\[|```|\||<|:::|    )", paragraph) and paragraph.strip():
            text = re.sub(r"!?\[([^\]]+)\]\([^)]*\)", r"\1", " ".join(paragraph.split()))
            return re.split(r"(?<=[.!?:])\s", text.replace("**", ""))[0].rstrip(":")
    return ""
