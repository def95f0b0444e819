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

// Paper has its own width, half of it where charts stand side by side, and less room below.
const plots = () => document.querySelectorAll(".plot.js-plotly-plot");
function fit(plot, height, layout) {
  plot.style.height = `${height}px`;
  Plotly.relayout(plot, { ...layout, height });
}
addEventListener("beforeprint", () => plots().forEach((plot) => {
  plot.dataset.height = plot.dataset.height || parseFloat(plot.style.height);
  const width = plot.closest(".grid") ? 335 : 680;
  fit(plot, 0.7 * plot.dataset.height, { width, autosize: false, "margin.b": 36 });
}));
addEventListener("afterprint", () => plots().forEach((plot) =>
  fit(plot, plot.dataset.height, { width: null, autosize: true, "margin.b": 48 })));
