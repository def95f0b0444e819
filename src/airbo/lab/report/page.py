"""Sections of a report as HTML, and the page that holds them.

All text that these functions take is plain text. A section needs no ids, styles or scripts of its
own: ``static/sections.css`` gives it its look and ``static/charts.js`` draws its charts, on the
page of a report and on that of ``airbo serve``.
"""

import base64
import gzip
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

# Nothing may be fetched, whatever a title or a name may hold.
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; form-action 'none'; base-uri 'none'"
)


@dataclass(frozen=True)
class Section:
    """A part of a report, in HTML."""

    key: str
    """What it is about: ``"trust"``."""
    title: str
    parts: tuple[str, ...]

    def html(self) -> str:
        """Return the section."""
        heading = f"<h2>{escape(self.title)}</h2>\n" if self.title else ""
        return (
            f'<section class="report" data-key="{escape(self.key)}">\n{heading}'
            + "\n".join(self.parts)
            + "\n</section>"
        )


@dataclass(frozen=True)
class Tile:
    """A number in large print."""

    label: str
    value: str
    note: str = ""


# -- text


def lead(words: str, doubt: bool = False) -> str:
    """Return the most important sentence of the page."""
    return _paragraph("lead doubt" if doubt else "lead", words)


def verdict(words: str, doubt: bool = False) -> str:
    """Return the conclusion of a section, in one sentence."""
    return _paragraph("verdict doubt" if doubt else "verdict", words)


def note(words: str) -> str:
    """Return a paragraph that explains how to read something."""
    return _paragraph("note", words)


def text(words: str) -> str:
    """Return a paragraph."""
    return f"<p>{escape(words)}</p>"


def _paragraph(kind: str, words: str) -> str:
    return f'<p class="{kind}">{escape(words)}</p>'


def points(sentences: Iterable[str]) -> str:
    """Return sentences, one below the other."""
    return f"<ul>{''.join(f'<li>{escape(sentence)}</li>' for sentence in sentences)}</ul>"


# -- numbers


def answer(settings: Iterable[tuple[str, str, str]], tiles: Iterable[Tile]) -> str:
    """Return what to set, as name, value and remark, and beside it what to expect."""
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td>'
        f'<td class="small">{escape(remark)}</td></tr>'
        for name, value, remark in settings
    )
    boxes = "".join(
        f"<div><dt>{escape(tile.label)}</dt>"
        f'<dd><div class="value">{escape(tile.value)}</div>'
        f'<div class="note">{escape(tile.note)}</div></dd></div>'
        for tile in tiles
    )
    return (
        f'<div class="first"><table class="set"><tbody>{rows}</tbody></table>'
        f'<dl class="tiles">{boxes}</dl></div>'
    )


def table(header: Sequence[str], rows: Sequence[Sequence[str]], faded: Iterable[int] = ()) -> str:
    """Return a table; ``faded`` are the rows that are struck through."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    struck = set(faded)
    body = "\n".join(
        f"<tr{' class=faded' if i in struck else ''}>"
        f"{''.join(_cell(c, title) for c, title in zip(row, header, strict=True))}</tr>"
        for i, row in enumerate(rows)
    )
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def _cell(cell: str, title: str) -> str:
    """Write a cell with the title of its column, which a phone shows beside it.

    Short cells that begin with a number stay on one line.
    """
    starts = cell[:1].isdigit() or cell[:1] in ("−", "+")
    number = ' class="number"' if starts and len(cell) < 24 else ""
    return f'<td{number} data-title="{escape(title)}">{escape(cell)}</td>'


def folded(summary: str, content: str, is_open: bool = False) -> str:
    """Return content that a reader can unfold; on a phone nothing is unfolded at first."""
    state = " open" if is_open else ""
    return f"<details{state}><summary>{escape(summary)}</summary>{content}</details>"


# -- charts


def chart(figure: go.Figure) -> str:
    """Return a chart."""
    data = figure.to_json().replace("<", "\\u003c")  # no tag may end the script element
    return (
        '<div class="chart">'
        f'<script type="application/json">{data}</script><div class="plot"></div></div>'
    )


def charts(figures: Iterable[tuple[str, go.Figure]]) -> str:
    """Return charts side by side, where there is room, with their headings."""
    return grid(*(f"{heading(title)}{chart(figure)}" for title, figure in figures))


def grid(*cells: str) -> str:
    """Return parts side by side, where there is room."""
    inner = "".join(f"<div>{cell}</div>" for cell in cells)
    return f'<div class="{"grid" if len(cells) > 1 else "single"}">{inner}</div>'


def heading(title: str) -> str:
    """Return the heading of one of several parts."""
    return f"<h3>{escape(title)}</h3>" if title else ""


# -- the page


def page(title: str, subtitle: str, sections: Iterable[str]) -> str:
    """Return a page that works offline and needs no other file, from the HTML of its sections."""
    body = "\n".join(sections)
    script = ""
    if '<div class="chart"' in body:
        script = (
            f'<script type="text/plain" id="plotly">{_plotly()}</script>\n'
            f"<script>{_static('charts.js')}</script>\n<script>{_static('page.js')}</script>"
        )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n"
        f"<style>{_static('page.css')}{_static('sections.css')}</style>\n</head>\n<body>\n"
        f'<main class="report">\n<h1>{escape(title)}</h1>\n'
        f"{note(subtitle)}\n"
        '<p class="doubt no-charts" hidden>This browser is too old to draw the charts. Texts and '
        f"tables are complete.</p>\n{body}\n</main>\n{script}\n</body>\n</html>\n"
    )


@cache
def _static(name: str) -> str:
    return (files(__package__) / "static" / name).read_text(encoding="utf-8")


@cache
def _plotly() -> str:
    """Return Plotly, packed: a browser unpacks it in a moment."""
    return base64.b64encode(gzip.compress(get_plotlyjs().encode(), 9, mtime=0)).decode()
