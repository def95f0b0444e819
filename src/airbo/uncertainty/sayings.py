"""Uncertainties in words: what a person reads about each kind."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from airbo.uncertainty.kinds import KINDS, name_of

Show = Callable[..., str]
"""Writes numbers for people, by default with their unit."""


def _say_normal(f: Mapping[str, Any], show: Show) -> str:
    if f.get("cov") is not None:
        return "normal with a covariance matrix"
    return f"normal, standard deviation {show(f['std'])}"


def _say_beta(f: Mapping[str, Any], show: Show) -> str:
    shape = f"beta({show(f['a'], unit=False)}, {show(f['b'], unit=False)})"
    return f"{shape}, {show(f['scale'])} wide from {show(f['loc'])} on"


def _say_chi_squared(f: Mapping[str, Any], show: Show) -> str:
    shape = f"chi-squared with {show(f['df'], unit=False)} degrees of freedom"
    return f"{shape}, times {show(f['scale'])}, from {show(f['loc'])} on"


def _say_relative(f: Mapping[str, Any], show: Show) -> str:
    def percent(numbers: Any, unit: bool = True) -> str:
        if not unit:
            return show(numbers, unit=False)
        return show(_times_100(numbers), unit=False) + "%"

    share, name = f["share"], name_of(f["share"])
    fields = share if isinstance(share, Mapping) else vars(share)
    if name == "Normal" and fields.get("cov") is None:
        return f"±{percent(fields['std'])} of the value (standard deviation)"
    if name == "Uniform":
        low, high = fields["low"], fields["high"]
        if isinstance(low, float) and low == -high:
            return f"anywhere within ±{percent(high)} of the value"
        return f"anywhere from {percent(low)} to {percent(high)} of the value"
    return f"in percent of the value: {said(share, percent)}"


def _times_100(numbers: Any) -> Any:
    plain = numbers.tolist() if hasattr(numbers, "tolist") else numbers
    if isinstance(plain, list | tuple):
        return [_times_100(v) for v in plain]
    return float(f"{100 * plain:.12g}")


def _say_mixture(f: Mapping[str, Any], show: Show) -> str:
    means, covs, weights = f["means"], f["covs"], f["weights"]
    if len(means[0]) > 1:
        return f"one of {len(weights)} normal distributions"
    stds = [math.sqrt(cov[0][0]) for cov in covs]
    if len(weights) > 1:
        parts = [
            f"{100 * w:.0f}% around {show(m, unit=False)} (±{show(s, unit=False)})"
            for w, m, s in zip(weights, means, stds, strict=True)
        ]
        return f"one of {len(weights)} normal distributions: {', '.join(parts)}"
    side = "above" if means[0][0] > 0 else "below"
    biased = f", on average {show(abs(means[0][0]))} {side} the design" if means[0][0] else ""
    return f"normal, standard deviation {show(stds[0])}{biased}"


def _say_empirical(f: Mapping[str, Any], show: Show) -> str:
    rows = f["deviations"]
    text = f"as in a log of {len(rows)} deviations"
    if len(rows[0]) > 1:
        return text
    own = [row[0] for row in rows]
    return f"{text}, from {show(min(own), unit=False)} to {show(max(own))}"


_MOST_PIECES = 4


def _say_piecewise(f: Mapping[str, Any], show: Show) -> str:
    edges, pieces = f["edges"], f["pieces"]
    if not 1 < len(pieces) <= _MOST_PIECES:
        return f"changes with the design, in {len(pieces)} steps"
    where = [f"below {show(edges[0])}", *(f"from {show(edge)} on" for edge in edges)]
    parts = (f"{place}: {said(piece, show)}" for place, piece in zip(where, pieces, strict=True))
    return "; ".join(parts)


def _say_distribution(f: Mapping[str, Any], show: Show) -> str:
    given = [*f.get("args", ()), *(f.get("kwds") or f.get("parameters") or {}).items()]
    parts = [f"{v[0]} = {_short(v[1])}" if isinstance(v, tuple) else _short(v) for v in given]
    return f"distributed as {f['name']}" + (f" ({', '.join(parts)})" if parts else "")


def _short(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"{len(value)} numbers" if len(value) > 3 else ", ".join(map(_short, value))
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _say_clipped(f: Mapping[str, Any], show: Show) -> str:
    ends = {"not below": f.get("low"), "not above": f.get("high")}
    limits = [f"{what} {show(end)}" for what, end in ends.items() if end is not None]
    return ", ".join([said(f["uncertainty"], show), *limits])


_BY_PROGRAM = {
    "Varying": "changes with the design, by a function",
    "Sampler": "drawn by a program",
}
"""Classes that hold a function, which no description can."""


def said(uncertainty: Any, show: Show) -> str:
    """Say in words what a deviation is like.

    Args:
        uncertainty: A description, or an object of a class of ``airbo.uncertainty``.
        show: Writes its numbers.
    """
    is_description = isinstance(uncertainty, Mapping)
    name = name_of(uncertainty)
    if name not in KINDS:
        return _BY_PROGRAM.get(name) or f"as the class {name} says"
    if not is_description and KINDS[name].module == "external":
        return _of_object(uncertainty, show)
    return _SAYINGS[name](uncertainty if is_description else vars(uncertainty), show)


def _of_object(uncertainty: Any, show: Show) -> str:
    """Say what a distribution of another library is; it knows its name, if it can be saved."""
    try:
        return said(uncertainty.to_dict(), show)
    except TypeError:
        return "a distribution of another library"


def _say_rounded(f: Mapping[str, Any], show: Show) -> str:
    return f"{said(f['uncertainty'], show)}, rounded to whole numbers in the range"


_SAYINGS: dict[str, Callable[[Mapping[str, Any], Show], str]] = {
    "Exact": lambda f, show: "hit exactly",
    "Normal": _say_normal,
    "Uniform": lambda f, show: (
        f"anywhere between {show(f['low'], unit=False)} and {show(f['high'])} of the design"
    ),
    "Beta": _say_beta,
    "ChiSquared": _say_chi_squared,
    "GaussianMixture": _say_mixture,
    "Ring": lambda f, show: f"on a circle of radius {show(f['radius'])}",
    "Empirical": _say_empirical,
    "SciPy": _say_distribution,
    "Torch": _say_distribution,
    "Relative": _say_relative,
    "LogNormal": lambda f, show: (
        f"±{show(_times_100(f['sigma']), unit=False)}% of the value (log-normal)"
    ),
    "Product": lambda f, show: "; ".join(said(block, show) for block in f["blocks"]),
    "Piecewise": _say_piecewise,
    "Clipped": _say_clipped,
    "Rounded": _say_rounded,
    "Scaled": lambda f, show: (
        f"{show(f['factor'], unit=False)} times: {said(f['uncertainty'], show)}"
    ),
}
"""By the name of the class."""
