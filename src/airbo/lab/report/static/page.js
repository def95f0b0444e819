// Unpacks Plotly, which is part of the page, and draws all charts.
"use strict";

async function unpackPlotly() {
  const packed = document.getElementById("plotly").textContent;
  const bytes = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const library = document.createElement("script");
  library.textContent = await new Response(stream).text();
  document.head.append(library);
}

unpackPlotly().then(
  () => {
    drawCharts(document);
    document.body.dataset.drawn = "yes";
  },
  () => document.querySelectorAll(".no-charts").forEach((p) => { p.hidden = false; }),
);

// Paper has its own width: half of it where charts stand side by side.
const plots = () => document.querySelectorAll(".plot.js-plotly-plot");
addEventListener("beforeprint", () => plots().forEach((plot) => Plotly.relayout(plot,
  { width: plot.closest(".charts, .beside") ? 335 : 680, autosize: false })));
addEventListener("afterprint", () => plots().forEach((plot) => Plotly.relayout(plot,
  { width: null, autosize: true })));
