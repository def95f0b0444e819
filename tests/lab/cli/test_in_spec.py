"""A campaign that is decided by the share in spec: what people and programs are told."""

import re

import pytest

from tests.lab.cli.common import airbo_, data
from tests.lab.common import LINE, write

NUMBER = r"(-?[\d.,]+)"


@pytest.fixture
def in_spec(here):
    """A campaign with values that rise with x, and limits on both sides."""
    write(here, LINE.replace('surrogate = "nominal"', 'measure = "in-spec:1.0..2.0"'))
    for i in range(9):
        airbo_("tell", f"x={i / 8}", 3 * i / 8)
    return here


def test_recommend_tells_programs_share_cpk_and_ppm_with_intervals(in_spec):
    best = data("recommend")
    assert best["measure"] == "in-spec:1..2"
    found = best["capability"]
    for name in ("share", "cpk", "ppm"):
        low, high = found[f"{name}_interval"]
        assert low <= found[name] <= high
    assert 0 <= found["share"] <= 1
    assert found["ppm"] == pytest.approx(1e6 * (1 - found["share"]))
    assert found["ppm_interval"] == pytest.approx(
        [1e6 * (1 - share) for share in reversed(found["share_interval"])]
    )
    assert best["mean"] == pytest.approx(found["share"], abs=0.02)  # fewer executed inputs


def test_recommend_tells_people_the_same(in_spec):
    found = data("recommend")["capability"]
    printed = " ".join(airbo_("recommend").stdout.split())
    share = re.search(rf"{NUMBER}% in spec \({NUMBER}% to {NUMBER}%\)", printed)
    cpk = re.search(rf"Cpk {NUMBER} \({NUMBER} to {NUMBER}\), {NUMBER} ppm", printed)
    low, high = found["share_interval"]
    shown = [float(part) for part in share.groups()]
    assert shown == pytest.approx([100 * s for s in (found["share"], low, high)], rel=0.01)
    assert float(cpk[1]) == pytest.approx(found["cpk"], abs=0.01)
    assert float(cpk[2]) <= float(cpk[1]) <= float(cpk[3])
    assert float(cpk[4].replace(",", "")) == pytest.approx(found["ppm"], abs=1)
