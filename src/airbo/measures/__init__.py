"""What counts of the values f(x') over P_x: their mean, a quantile, the share within limits.

>>> from airbo import measures
>>> measures.CVaR(0.9).words
'mean over the worst 10 of 100 executed inputs'
>>> measures.measure_from({"kind": "InSpec", "high": 0.2})
InSpec(low=None, high=0.2)
"""

from airbo.measures.kinds import (
    CVaR,
    InSpec,
    Mean,
    MeanStd,
    Measure,
    Quantile,
    Target,
    Worst,
    check_measure,
    from_text,
    measure_from,
    to_text,
)

__all__ = [
    "CVaR",
    "InSpec",
    "Mean",
    "MeanStd",
    "Measure",
    "Quantile",
    "Target",
    "Worst",
    "check_measure",
    "from_text",
    "measure_from",
    "to_text",
]
