"""One HTML page that needs nothing else: text, tables and charts."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

_STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0; background: #f4f5f7; color: #1d2125; line-height: 1.5;
  font-family: system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; font-size: 16px; }
main { max-width: 1180px; margin: 0 auto; padding: 16px; }
h1 { font-size: 1.6rem; margin: 0.4em 0 0.1em; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 0 0 0.3em; }
h3 { font-size: 1rem; margin: 0.6em 0 0; overflow-wrap: anywhere; }
section { background: #fff; border: 1px solid #e0e3e7; border-radius: 8px; padding: 16px 20px;
  margin: 14px 0; }
p { margin: 0.4em 0; max-width: 80ch; overflow-wrap: anywhere; }
.lead { font-size: 1.25rem; max-width: none; }
.lead.doubt { border-left: 5px solid #d55e00; padding-left: 12px; }
.note { color: #50565c; font-size: 0.92rem; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 460px), 1fr));
  gap: 8px 20px; }
.charts > div { min-width: 0; }
.chart { width: 100%; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.92rem; margin: 0.6em 0; }
th, td { text-align: left; padding: 5px 12px 5px 0; border-bottom: 1px solid #e6e8eb;
  vertical-align: top; overflow-wrap: break-word; }
th { font-weight: 600; color: #50565c; }
td.number { font-variant-numeric: tabular-nums; white-space: nowrap; }
select { font: inherit; padding: 4px 8px; max-width: 100%; margin: 0.4em 0; }
.hidden { display: none; }
@media (max-width: 600px) { main { padding: 8px; } section { padding: 12px; } }
@media print { body { background: #fff; font-size: 11pt; } section { border: 0; padding: 0; }
  .chart, tr { break-inside: avoid; } h2, h3 { break-after: avoid; } select { display: none; } }
"""

_SCRIPT = """
"use strict";
const settings = {responsive: true, displayModeBar: false};
function draw(chart) {
  if (chart.dataset.drawn) { return; }
  chart.dataset.drawn = "yes";
  const figure = JSON.parse(chart.querySelector("script").textContent);
  if (window.innerWidth < 600) {
    figure.layout.font.size = 11;
    figure.layout.margin.l = 44;
    figure.layout.dragmode = false;  // a finger scrolls the page
  }
  Plotly.newPlot(chart.querySelector(".plot"), figure.data, figure.layout, settings);
}
for (const chart of document.querySelectorAll(".chart:not(.hidden)")) { draw(chart); }
for (const choice of document.querySelectorAll("select")) {
  choice.addEventListener("change", () => {
    for (const option of choice.options) {
      const chart = document.getElementById(option.value);
      chart.classList.toggle("hidden", option.value !== choice.value);
    }
    draw(document.getElementById(choice.value));
  });
}
"""

# Nothing may be fetched, whatever a title or a name may hold.
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; form-action 'none'; base-uri 'none'"
)


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
        """Add the sentence that has to be read if nothing else is."""
        kind = "lead doubt" if doubt else "lead"
        self._parts.append(f'<p class="{kind}">{escape(text)}</p>')

    def text(self, text: str) -> None:
        """Add a paragraph."""
        self._parts.append(f"<p>{escape(text)}</p>")

    def note(self, text: str) -> None:
        """Add a paragraph that explains how to read something."""
        self._parts.append(f'<p class="note">{escape(text)}</p>')

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Add a table; it scrolls on its own where it is too wide."""
        head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
        body = "\n".join(
            f"<tr>{''.join(f'<td{_class(c)}>{escape(c)}</td>' for c in row)}</tr>" for row in rows
        )
        self._parts.append(
            f'<div class="scroll"><table><thead><tr>{head}</tr></thead>\n'
            f"<tbody>\n{body}\n</tbody></table></div>"
        )

    def charts(self, figures: Sequence[tuple[str, go.Figure]]) -> None:
        """Add charts side by side, where there is room, with their headings."""
        inner = [f"<div>{_heading(title)}{self._chart(f)}</div>" for title, f in figures]
        kind = "charts" if len(figures) > 1 else "single"
        self._parts.append(f'<div class="{kind}">{"".join(inner)}</div>')

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
        library = get_plotlyjs() if self._n_charts else ""
        script = f"<script>{library}</script>\n<script>{_SCRIPT}</script>" if library else ""
        return (
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{escape(self.title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
            f"<main>\n<h1>{escape(self.title)}</h1>\n"
            f'<p class="note">{escape(self.subtitle)}</p>\n<section>\n'
            + "\n".join(self._parts)
            + f"\n</section>\n</main>\n{script}\n</body>\n</html>\n"
        )


def _heading(title: str) -> str:
    return f"<h3>{escape(title)}</h3>" if title else ""


def _class(cell: str) -> str:
    """Keep short cells that begin with a number on one line."""
    starts = cell[:1].isdigit() or cell[:1] in ("−", "+")
    return ' class="number"' if starts and len(cell) < 24 else ""
