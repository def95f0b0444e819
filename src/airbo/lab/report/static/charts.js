// Draws the charts of report sections with Plotly, which the page has loaded before.
"use strict";

const drawCharts = (() => {
  const settings = { responsive: true, displayModeBar: false };
  const narrow = 600;

  // The colours of the page, and on a phone smaller letters and no dragging.
  function themed(layout) {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const own = { ...layout, paper_bgcolor: colour("--paper"), plot_bgcolor: colour("--paper") };
    own.font = { ...layout.font, color: colour("--ink") };
    for (const name of Object.keys(layout).filter((n) => /^[xy]axis/.test(n))) {
      own[name] = { ...layout[name], gridcolor: colour("--line"), linecolor: colour("--quiet") };
    }
    if (innerWidth < narrow) {
      own.font.size = 11;
      own.margin = { ...layout.margin, l: 44 };
      own.dragmode = false; // a finger scrolls the page
    }
    return own;
  }

  function drawOne(chart) {
    const plot = chart.querySelector(".plot");
    const figure = JSON.parse(chart.querySelector("script").textContent);
    plot.style.height = `${figure.layout.height}px`;
    Plotly.react(plot, figure.data, themed(figure.layout), settings);
  }

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawAll(document));

  if (innerWidth < narrow) {
    document.querySelectorAll("details[open]").forEach((part) => { part.open = false; });
  }

  function drawAll(root) {
    if (!window.Plotly) { return; }
    root.querySelectorAll(".chart").forEach(drawOne);
  }
  return drawAll;
})();
