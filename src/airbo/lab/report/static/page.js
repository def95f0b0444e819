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

// Paper has its own width, a half or a third of it where charts stand side by side, and less room.
const plots = () => document.querySelectorAll(".plot.js-plotly-plot");
function fit(plot, height, layout) {
  plot.style.height = `${height}px`;
  Plotly.relayout(plot, { ...layout, height });
}
addEventListener("beforeprint", () => plots().forEach((plot) => {
  const before = { height: parseFloat(plot.style.height), font: plot.layout.font.size, left: plot.layout.margin.l };
  plot.onScreen = plot.onScreen || before;
  const [width, font] = plot.closest(".three") ? [220, 9] : plot.closest(".grid") ? [335, 11] : [680, 13];
  fit(plot, 0.6 * plot.onScreen.height,
    { width, autosize: false, "font.size": font, "margin.b": 36, "margin.l": 44 });
}));
addEventListener("afterprint", () => plots().forEach((plot) => {
  const { height, font, left } = plot.onScreen;
  fit(plot, height, { width: null, autosize: true, "font.size": font, "margin.b": 48, "margin.l": left });
}));
