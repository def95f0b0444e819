// Draws the charts of the page with the Plotly that the server sends.
"use strict";

(() => {
  const dark = matchMedia("(prefers-color-scheme: dark)");

  function themed(layout) {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const changed = { ...layout, paper_bgcolor: colour("--paper"), plot_bgcolor: colour("--paper") };
    changed.font = { ...layout.font, color: colour("--ink") };
    for (const name of Object.keys(layout).filter((n) => /^[xy]axis/.test(n))) {
      changed[name] = { ...layout[name], gridcolor: colour("--line"), linecolor: colour("--quiet") };
    }
    if (innerWidth < 640) {
      changed.font.size = 11;
      changed.margin = { ...layout.margin, l: 44 };
      changed.dragmode = false; // a finger scrolls the page
    }
    return changed;
  }

  function draw(root) {
    for (const place of root.querySelectorAll(".plot[data-figure]")) {
      const { data, layout } = JSON.parse(place.dataset.figure);
      place.style.height = `${layout.height || 400}px`;
      Plotly.react(place, data, themed(layout), { responsive: true, displayModeBar: false });
    }
  }

  document.addEventListener("shown", (event) => draw(event.target));
  dark.addEventListener("change", () => draw(document));
  addEventListener("load", () => draw(document));
})();
