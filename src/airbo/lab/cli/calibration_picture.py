"""A picture of a log: what was found, and what is proposed."""

import io
from typing import Any

import matplotlib as mpl
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from airbo.calibrate import Learned, Sample
from airbo.uncertainty import InputUncertainty, base_draws

_Array = NDArray[np.float64]

LOGGED, PROPOSED, NORMAL, _FAR = "#D55E00", "#0072B2", "#6B6B6B", "#A00000"  # colour-blind safe
_STYLE: Any = {
    "font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "axes.titlesize": 11,
    "axes.titlelocation": "left", "legend.frameon": False,
}  # fmt: skip
_MOST_POINTS, _N_DRAWS, _N_BINS, _N_GRID, _N_PARTS = 3000, 512, 45, 200, 20


def picture(learned: Learned, title: str) -> bytes:
    """Draw a row per parameter, and one per group that is missed together; return a PNG."""
    groups = [names for names in learned.by_parameter if not isinstance(names, str)]
    n = len(learned.samples) + len(groups)
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(13, 3.1 * n + 0.6), layout="constrained")
        rows = figure.subfigures(n, 1, squeeze=False)[:, 0]
        for row, sample, far in zip(rows, learned.samples, learned.outliers, strict=False):
            own = _proposed(learned, sample.name)
            left, middle, right = row.subplots(1, 3, width_ratios=[1.2, 1, 1.2])
            _over_range(left, sample, far, own)
            _how_often(middle, sample, own)
            _in_order(right, sample, far)
        for row, names in zip(rows[len(learned.samples) :], groups, strict=True):
            _together(row.subplots(1, 3), learned, names)
        figure.suptitle(
            f"{_plain(title)}: deviation = actual − asked", x=0.01, ha="left", fontsize=12
        )
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=110)
    return buffer.getvalue()


def _proposed(learned: Learned, name: str) -> InputUncertainty:
    found = (c for c in learned.candidates if c.parameters == (name,) and c.chosen)
    return next(found).uncertainty


def _over_range(ax: Axes, sample: Sample, far: Sample, own: InputUncertainty) -> None:
    """Draw deviations over asked values, and where the proposal expects them."""
    grid = np.linspace(sample.x.min(), sample.x.max(), _N_GRID)
    low, middle, high = np.quantile(_drawn(own, grid), [0.05, 0.5, 0.95], axis=1)
    some = _some(len(sample))
    _points(ax, sample.x[some], sample.d[some])
    ax.fill_between(grid, low, high, color=PROPOSED, alpha=0.22, lw=0, label="proposal: 90%")
    ax.plot(grid, middle, color=PROPOSED, lw=1.5, label="its median")
    _mark(ax, far.x, far, sample)
    ax.set(
        title=_plain(sample.name), xlabel="asked value", ylabel="deviation", ylim=_range(sample.d)
    )
    _legend(ax)


def _how_often(ax: Axes, sample: Sample, own: InputUncertainty) -> None:
    """Compare the log with the proposal, and with a normal, in the same bins."""
    edges = _bins(sample)
    drawn = _drawn(own, sample.x[_some(len(sample), 200)]).ravel()
    normal = np.random.default_rng(0).normal(sample.d.mean(), sample.d.std(), 100_000)
    share = {
        name: 100 * np.histogram(values, edges)[0] / len(values)
        for name, values in (("logged", sample.d), ("proposal", drawn), ("a normal", normal))
    }
    ax.stairs(share["logged"], edges, fill=True, color=LOGGED, alpha=0.4, label="logged")
    ax.stairs(share["a normal"], edges, color=NORMAL, ls=":", lw=1.2, label="a normal")
    ax.stairs(share["proposal"], edges, color=PROPOSED, lw=1.6, label="proposal")
    ax.set(xlabel="deviation", ylabel="% of the rows", title="How often")
    _legend(ax)


def _bins(sample: Sample) -> _Array:
    """Return the edges of bins; where the log has steps, each bin holds whole ones."""
    low, high = _range(sample.d)
    width = (high - low) / _N_BINS
    if sample.width > width / 5:
        width = sample.width * np.ceil(width / sample.width)
    start = np.floor(low / width) * width - width / 2
    return np.asarray(start + width * np.arange(int((high - start) / width) + 2))


def _in_order(ax: Axes, sample: Sample, far: Sample) -> None:
    """Draw deviations in the order of the rows, with their medians."""
    some = _some(len(sample))
    _points(ax, sample.rows[some], sample.d[some])
    parts = np.array_split(np.arange(len(sample)), min(_N_PARTS, len(sample)))
    at = [float(sample.rows[part].mean()) for part in parts]
    medians = [float(np.median(sample.d[part])) for part in parts]
    ax.plot(at, medians, color=PROPOSED, lw=1.5, label="median")
    _mark(ax, far.rows, far, sample)
    ax.set(xlabel="row", title="Row by row", ylim=_range(sample.d))
    _legend(ax)


def _together(axes: NDArray, learned: Learned, names: tuple[str, ...]) -> None:
    """Draw the deviations of pairs of parameters, logged and proposed."""
    own = learned.by_parameter[names]
    by_name = {s.name: s for s in learned.samples}
    X = torch.tensor([[float(np.median(by_name[n].x)) for n in names]], dtype=torch.float64)
    drawn = (own.perturb(X, base_draws(_N_DRAWS, own.n_base(len(names)))) - X[:, None])[0].numpy()
    pairs = [(i, j) for i in range(len(names)) for j in range(i + 1, len(names))]
    for ax, (i, j) in zip(axes, pairs, strict=False):
        one, other = by_name[names[i]], by_name[names[j]]
        _, a, b = np.intersect1d(one.rows, other.rows, return_indices=True)
        some = _some(len(a))
        _points(ax, one.d[a][some], other.d[b][some])
        ax.scatter(drawn[:, i], drawn[:, j], s=5, color=PROPOSED, alpha=0.5, lw=0, label="proposal")
        first, second = _plain(names[i]), _plain(names[j])
        ax.set(title=f"{first} and {second}", xlabel=f"deviation of {first}")
        ax.set(ylabel=f"deviation of {second}", xlim=_range(one.d), ylim=_range(other.d))
        _legend(ax)
    for ax in axes[len(pairs) :]:
        ax.set_axis_off()


def _legend(ax: Axes) -> None:
    """Put the legend beside the title, where it hides nothing."""
    ax.legend(
        loc="lower right", bbox_to_anchor=(1, 0.97), ncols=4, fontsize=8, handlelength=1.2,
        columnspacing=1.0, borderaxespad=0,
    )  # fmt: skip


def _points(ax: Axes, x: NDArray, y: _Array) -> None:
    ax.scatter(x, y, s=6, color=LOGGED, alpha=0.35, lw=0, label="logged", rasterized=True)
    ax.axhline(0, color=NORMAL, lw=0.6)


def _mark(ax: Axes, x: NDArray, far: Sample, sample: Sample) -> None:
    """Mark values far off; those beyond the chart stand at its edge."""
    if len(far):
        low, high = _range(sample.d)
        inset = 0.04 * (high - low)
        y = np.clip(far.d, low + inset, high - inset)
        ax.scatter(x, y, marker="x", s=36, color=_FAR, label="far off", zorder=3)


def _drawn(own: InputUncertainty, x: _Array) -> _Array:
    """Return deviations that the proposal expects, (n s)."""
    X = torch.tensor(x, dtype=torch.float64).unsqueeze(-1)
    samples = own.perturb(X, base_draws(_N_DRAWS, own.n_base(1)))
    return np.asarray((samples - X.unsqueeze(-2)).squeeze(-1).numpy())


def _range(deviations: _Array) -> tuple[float, float]:
    """Return what a chart shows: all but the outermost values, where those are far out."""
    low, high = np.quantile(deviations, [0.01, 0.99])
    room = 0.6 * float(high - low) or float(np.ptp(deviations)) or 1.0
    least, most = float(deviations.min()), float(deviations.max())
    return max(float(low) - room, least - room / 4), min(float(high) + room, most + room / 2)


def _some(n: int, most: int = _MOST_POINTS) -> NDArray[np.int64]:
    """Pick rows evenly."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.int64))


def _plain(text: str) -> str:
    """Keep Matplotlib from reading what stands between dollars as a formula."""
    return text.replace("$", r"\$")
