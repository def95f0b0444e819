"""A campaign that is decided by the share in spec: what people and programs are told."""

import pytest

from airbo.measures.capability import Capability
from tests.lab.cli.common import airbo_, data
from tests.lab.common import LINE, write


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
    assert best["mean"] == found["share"] == best["outcomes"]["value"]["mean"]
    assert best["unit"] is None  # a share has none
    assert best["operating_window"]["probability"] == found["share"]


def test_recommend_tells_people_the_same(in_spec):
    found = data("recommend")["capability"]
    numbers = {k: tuple(v) if isinstance(v, list) else v for k, v in found.items()}
    assert Capability(**numbers).words in " ".join(airbo_("recommend").stdout.split())
