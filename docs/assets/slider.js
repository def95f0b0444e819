// A reader widens the error of the machine and sees the best setting jump. Averages are exact:
// a Gaussian bump under a normal error is a wider, lower Gaussian bump.
(() => {
  const BUMPS = [{ at: 0.75, width: 0.045, height: 1.0 }, { at: 0.3, width: 0.16, height: 0.68 }];
  const W = 640, H = 300, LEFT = 40, BOTTOM = 250, TOP = 15, N = 480;
  const px = (x) => LEFT + x * (W - LEFT - 10);
  const py = (y) => BOTTOM - (y / 1.1) * (BOTTOM - TOP);
  const bump = (b, x, s) => {
    const v = b.width * b.width + 2 * s * s;
    return (b.height * b.width / Math.sqrt(v)) * Math.exp(-((x - b.at) ** 2) / v);
  };
  const f = (x) => BUMPS.reduce((sum, b) => sum + bump(b, x, 0), 0);
  const average = {
    normal: (x, s) => BUMPS.reduce((sum, b) => sum + bump(b, x, s), 0),
    modes: (x, s) => (f(x) + f(x + s)) / 2,
  };
  const landing = {
    normal: (x, s) => [...Array(25).keys()].map((i) => x + s * quantile((i + 0.5) / 25)),
    modes: (x, s) => [x, x + s],
  };
  // Quantiles of the normal distribution, by bisection of Abramowitz and Stegun 7.1.26.
  const cdf = (z) => {
    const t = 1 / (1 + 0.3275911 * Math.abs(z) / Math.SQRT2);
    const poly = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
    const erf = 1 - poly * Math.exp(-z * z / 2);
    return z < 0 ? (1 - erf) / 2 : (1 + erf) / 2;
  };
  const quantile = (p) => {
    let low = -5, high = 5;
    for (let i = 0; i < 40; i++) { const mid = (low + high) / 2; if (cdf(mid) < p) low = mid; else high = mid; }
    return low;
  };
  const best = (g) => {
    let at = 0;
    for (let i = 0; i <= N; i++) if (g(i / N) > g(at)) at = i / N;
    return at;
  };
  const path = (g) => [...Array(N + 1).keys()].map((i) => `${i ? "L" : "M"}${px(i / N).toFixed(1)} ${py(g(i / N)).toFixed(1)}`).join("");

  const box = document.getElementById("airbo-slider");
  box.innerHTML = `
    <label>error of the machine: <output></output><br>
    <input type="range" min="0" max="0.2" step="0.002" value="0.02" style="width:100%" aria-label="width of the error"></label>
    <label><input type="radio" name="kind" value="normal" checked> normal</label>
    <label><input type="radio" name="kind" value="modes"> two modes: hits, or overshoots by the width</label>
    <svg viewBox="0 0 ${W} ${H}" style="width:100%;max-width:50rem;display:block;color:var(--md-typeset-color)" role="img" aria-label="results by setting"></svg>
    <p aria-live="polite"></p>`;
  const [slider] = box.getElementsByTagName("input");
  const svg = box.querySelector("svg"), words = box.querySelector("p"), output = box.querySelector("output");
  const peak = best(f);

  const mark = (x, g, colour, row, s, kind) => `
    <line x1="${px(x)}" x2="${px(x)}" y1="${py(g(x))}" y2="${row}" stroke="${colour}" stroke-dasharray="2 3"/>
    <circle cx="${px(x)}" cy="${py(g(x))}" r="7" fill="${colour}" stroke="#fff"/>
    ${landing[kind](x, s).filter((z) => z > -0.02 && z < 1.01).map((z) => `<line x1="${px(z)}" x2="${px(z)}" y1="${row - 6}" y2="${row + 6}" stroke="${colour}" stroke-width="1.6"/>`).join("")}`;

  const draw = () => {
    const s = Number(slider.value), kind = box.querySelector("input:checked").value;
    const g = (x) => average[kind](x, s), at = best(g);
    svg.innerHTML = `
      <line x1="${LEFT}" x2="${W - 10}" y1="${py(0)}" y2="${py(0)}" stroke="currentColor" opacity=".4"/>
      <path d="${path(f)}" fill="none" stroke="#9a9a9a" stroke-width="2"/>
      <path d="${path(g)}" fill="none" stroke="currentColor" stroke-width="2" stroke-dasharray="7 4"/>
      ${mark(peak, g, "#D55E00", 270, s, kind)}${mark(at, g, "#2b8fd0", 288, s, kind)}
      <text x="4" y="${py(1)}" fill="currentColor" font-size="13">result</text>
      <text x="${W - 60}" y="${py(0) - 6}" fill="currentColor" font-size="13">setting</text>`;
    output.value = s.toFixed(3);
    words.textContent = `Best setting: ${at.toFixed(2)}, ${g(at).toFixed(2)} on average. The highest point (${peak.toFixed(2)}) gives ${g(peak).toFixed(2)} on average.`;
  };
  box.addEventListener("input", draw);
  draw();
})();
