"""One HTML page that needs nothing else: text, tables, tiles and charts."""

import base64
import gzip
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from html import escape

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

_STYLE = """
:root { color-scheme: light; --ink: #1d2429; --quiet: #56626b; --line: #dfe4e8; --soft: #eef4f7;
  --main: #1f6f8b; --doubt: #8a5a00; --doubt-soft: #fdf3dc; }
* { box-sizing: border-box; }
body { margin: 0; background: #f3f5f7; color: var(--ink); line-height: 1.5; font-size: 16px;
  font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
main { margin: 0 auto; padding: 18px clamp(10px, 2.5vw, 40px); }
h1 { font-size: 1.6rem; margin: 0 0 .1em; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 0 0 .3em; }
h3 { font-size: 1rem; margin: .6em 0 0; overflow-wrap: anywhere; }
section { background: #fff; border: 1px solid var(--line); border-radius: 10px; padding: 16px 22px;
  margin: 14px 0; }
p, li { max-width: 85ch; overflow-wrap: anywhere; }
p { margin: .4em 0; }
ul { margin: .8em 0; padding-left: 1.2em; columns: 2 34rem; column-gap: 36px; }
li { break-inside: avoid; }
.lead { font-size: 1.15rem; }
.doubt { background: var(--doubt-soft); color: var(--doubt); border-radius: 8px;
  padding: 8px 14px; }
.note { color: var(--quiet); font-size: .92rem; }
.verdict { font-weight: 600; }
.first { display: grid; grid-template-columns: minmax(0, 5fr) minmax(0, 7fr); gap: 10px 36px; }
.set { width: 100%; font-size: 1.25rem; }
.set td { font-weight: 600; white-space: nowrap; }
.set td, .set th { padding: 7px 12px 7px 0; }
.set .small { white-space: normal; font-weight: 400; font-size: .9rem; color: var(--quiet); }
.tiles { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 12px; margin: 0; }
.tiles > div { background: var(--soft); border-radius: 10px; padding: 12px 16px; }
.tiles dt { color: var(--quiet); font-size: .92rem; }
.tiles dd { margin: 0; }
.tiles .value { font-size: 1.45rem; font-weight: 650; font-variant-numeric: tabular-nums;
  overflow-wrap: anywhere; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 430px), 1fr));
  gap: 8px 24px; }
.charts > div { min-width: 0; }
.beside { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 430px), 1fr));
  gap: 8px 36px; align-items: start; }
.beside > div { min-width: 0; }
.chart { width: 100%; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .92rem; margin: .5em 0; }
th, td { text-align: left; padding: 5px 14px 5px 0; border-bottom: 1px solid var(--line);
  vertical-align: top; overflow-wrap: break-word; }
th { font-weight: 600; color: var(--quiet); }
td.number { font-variant-numeric: tabular-nums; white-space: nowrap; }
tr.faded td { color: var(--quiet); text-decoration: line-through; }
select { font: inherit; padding: 4px 8px; max-width: 100%; margin: .4em 0; }
.hidden { display: none; }
.no-charts { display: none; }
@media (max-width: 900px) { .first { grid-template-columns: minmax(0, 1fr); } }
@media (max-width: 600px) { main { padding: 8px; } section { padding: 12px; }
  .tiles { grid-template-columns: minmax(0, 1fr); } .set { font-size: 1.1rem; } }
@page { size: A4; margin: 12mm; }
@media print { body { background: #fff; font-size: 9.5pt; } main { padding: 0; }
  section { border: 0; padding: 0; margin: 0 0 16px; }
  .first { grid-template-columns: minmax(0, 5fr) minmax(0, 7fr); gap: 10px 20px; }
  .charts, .beside { grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 4px 12px; }
  .set { font-size: 1.1rem; } .tiles .value { font-size: 1.15rem; } 
  .tiles > div { padding: 6px 10px; border: 1px solid var(--line); }
  .chart, tr, .tiles > div, .first { break-inside: avoid; } h2, h3 { break-after: avoid; }
  select { display: none; } .scroll { overflow: visible; } }
"""

_SCRIPT = """
"use strict";
const settings = {responsive: true, displayModeBar: false};
const plots = () => [...document.querySelectorAll(".plot.js-plotly-plot")];
function draw(chart) {
  if (chart.dataset.drawn || !window.Plotly) { return; }
  chart.dataset.drawn = "yes";
  const figure = JSON.parse(chart.querySelector("script").textContent);
  if (window.innerWidth < 600) {
    figure.layout.font.size = 11;
    figure.layout.margin.l = 44;
    figure.layout.dragmode = false;  // a finger scrolls the page
  }
  Plotly.newPlot(chart.querySelector(".plot"), figure.data, figure.layout, settings);
}
async function unpack() {
  const packed = document.getElementById("plotly").textContent;
  const bytes = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const library = document.createElement("script");
  library.textContent = await new Response(stream).text();
  document.head.append(library);
}
async function start() {
  try { await unpack(); } catch (error) {
    document.querySelectorAll(".no-charts").forEach((p) => p.classList.remove("no-charts"));
    return;
  }
  for (const chart of document.querySelectorAll(".chart:not(.hidden)")) { draw(chart); }
  document.body.dataset.drawn = "yes";
}
for (const choice of document.querySelectorAll("select")) {
  choice.addEventListener("change", () => {
    for (const option of choice.options) {
      const chart = document.getElementById(option.value);
      chart.classList.toggle("hidden", option.value !== choice.value);
    }
    draw(document.getElementById(choice.value));
  });
}
// paper has its own width: half of it where charts stand side by side
addEventListener("beforeprint", () => plots().forEach((plot) => Plotly.relayout(plot,
  {width: plot.closest(".charts, .beside") ? 335 : 680, autosize: false})));
addEventListener("afterprint", () => plots().forEach((plot) => Plotly.relayout(plot,
  {width: null, autosize: true})));
start();
"""

# Nothing may be fetched, whatever a title or a name may hold.
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; form-action 'none'; base-uri 'none'"
)


@cache
def _library() -> str:
    """Return Plotly, packed: a browser unpacks it in a moment."""
    return base64.b64encode(gzip.compress(get_plotlyjs().encode(), 9, mtime=0)).decode()


@dataclass(frozen=True)
class Tile:
    """A number in large print."""

    label: str
    value: str
    note: str = ""


@dataclass
class Page:
    """A page that grows from top to bottom. All text given to it is plain text."""

    title: str
    subtitle: str
    _parts: list[str] = field(default_factory=list)
    _n_charts: int = 0

    def section(self, title: str) -> None:
        """Begin a section."""
        self._parts.append(f"</section>\n<section>\n<h2>{escape(title)}</h2>")

    def lead(self, text: str, doubt: bool = False) -> None:
        """Add the most important sentence of the page."""
        kind = "lead doubt" if doubt else "lead"
        self._parts.append(f'<p class="{kind}">{escape(text)}</p>')

    def text(self, text: str) -> None:
        """Add a paragraph."""
        self._parts.append(f"<p>{escape(text)}</p>")

    def verdict(self, text: str, doubt: bool = False) -> None:
        """Add the conclusion of a section, in one sentence."""
        kind = "verdict doubt" if doubt else "verdict"
        self._parts.append(f'<p class="{kind}">{escape(text)}</p>')

    def note(self, text: str) -> None:
        """Add a paragraph that explains how to read something."""
        self._parts.append(f'<p class="note">{escape(text)}</p>')

    def points(self, texts: Sequence[str]) -> None:
        """Add sentences, one below the other."""
        listed = "".join(f"<li>{escape(text)}</li>" for text in texts)
        self._parts.append(f"<ul>{listed}</ul>")

    def answer(self, settings: Sequence[tuple[str, str, str]], tiles: Sequence[Tile]) -> None:
        """Add what to set, as name, value and remark, and beside it what to expect."""
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
        self._parts.append(
            f'<div class="first"><table class="set"><tbody>{rows}</tbody></table>'
            f'<dl class="tiles">{boxes}</dl></div>'
        )

    def table(
        self, header: Sequence[str], rows: Sequence[Sequence[str]], faded: Sequence[int] = ()
    ) -> None:
        """Add a table; it scrolls on its own where it is too wide."""
        self._parts.append(_table(header, rows, faded))

    def charts(self, figures: Sequence[tuple[str, go.Figure]]) -> None:
        """Add charts side by side, where there is room, with their headings."""
        inner = [f"<div>{_heading(title)}{self._chart(f)}</div>" for title, f in figures]
        kind = "charts" if len(figures) > 1 else "single"
        self._parts.append(f'<div class="{kind}">{"".join(inner)}</div>')

    def beside(self, figure: go.Figure, verdict: str, doubt: bool, notes: Sequence[str]) -> None:
        """Add a chart, and its message beside it."""
        kind = "verdict doubt" if doubt else "verdict"
        said = "".join(f'<p class="note">{escape(note)}</p>' for note in notes)
        self._parts.append(
            f'<div class="beside"><div>{self._chart(figure)}</div>'
            f'<div><p class="{kind}">{escape(verdict)}</p>{said}</div></div>'
        )

    def choice(self, what: str, figures: Sequence[tuple[str, go.Figure]]) -> None:
        """Add charts of which one is shown at a time."""
        first = self._n_charts
        options = "".join(
            f'<option value="chart-{first + i}">{escape(title)}</option>'
            for i, (title, _) in enumerate(figures)
        )
        charts = "".join(self._chart(f, hidden=i > 0) for i, (_, f) in enumerate(figures))
        self._parts.append(f'<select aria-label="{escape(what)}">{options}</select>{charts}')

    def _chart(self, figure: go.Figure, hidden: bool = False) -> str:
        data = figure.to_json().replace("<", "\\u003c")  # no tag may end the script element
        name, kind = f"chart-{self._n_charts}", "chart hidden" if hidden else "chart"
        self._n_charts += 1
        return (
            f'<div class="{kind}" id="{name}"><script type="application/json">{data}</script>'
            f'<div class="plot" style="height:{figure.layout.height}px"></div></div>'
        )

    def html(self) -> str:
        """Return the whole page."""
        script = ""
        if self._n_charts:
            script = (
                f'<script type="text/plain" id="plotly">{_library()}</script>\n'
                f"<script>{_SCRIPT}</script>"
            )
        return (
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{escape(self.title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
            f"<main>\n<h1>{escape(self.title)}</h1>\n"
            f'<p class="note">{escape(self.subtitle)}</p>\n'
            '<p class="doubt no-charts">This browser is too old to draw the charts. Texts and '
            "tables are complete.</p>\n<section>\n"
            + "\n".join(self._parts)
            + f"\n</section>\n</main>\n{script}\n</body>\n</html>\n"
        )


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], faded: Sequence[int]) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "\n".join(
        f"<tr{' class=faded' if i in faded else ''}>"
        f"{''.join(f'<td{_class(c)}>{escape(c)}</td>' for c in row)}</tr>"
        for i, row in enumerate(rows)
    )
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def _heading(title: str) -> str:
    return f"<h3>{escape(title)}</h3>" if title else ""


def _class(cell: str) -> str:
    """Keep short cells that begin with a number on one line."""
    starts = cell[:1].isdigit() or cell[:1] in ("−", "+")
    return ' class="number"' if starts and len(cell) < 24 else ""
