"""Extremes are refused at the door: what is accepted can be asked, told and recommended."""

import pytest

from airbo.lab import CampaignError, FileError
from airbo.lab.limits import FARTHEST_RANGES, LARGEST_INTEGER
from tests.lab.common import LINE, campaign, edited, settings

HEAD = 'name = "a"\nsurrogate = "nominal"\nn_initial = 2\nstorage = "sqlite:///a.db"\n'
RANGE = "[parameters.x]\nlow = {}\nhigh = {}\n"


def normal(std, more="", low=0.0, high=1.0):
    return RANGE.format(low, high) + f'uncertainty = {{ kind = "normal", std = {std}{more} }}\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (RANGE.format(-1.7e308, 1.7e308), r"low must not exceed 1e\+100 in size"),
        (RANGE.format(0.0, 1e-320), "high must be at least 1e-100 above low"),
        (RANGE.format(1.0, 1.0 + 2**-52), "high must be at least 1e-09 above low"),
        (RANGE.format(0, "true"), "high must be a number, got True"),
        (RANGE.format(0, "nan"), "high must be finite, got nan"),
        (RANGE.format(1e-300, 1.0) + "log = true", "needs low >= 1e-100"),
        (RANGE.format(0.0, 1.0) + "step = 1e-300", "at most 1,000,000 values"),
        (RANGE.format(0, 2**63 - 1) + 'type = "integer"', "high must not exceed 9.0072e"),
        (RANGE.format(0, 10**400) + 'type = "integer"', "too many digits"),
        ('[parameters.""]\nlow = 0\nhigh = 1\n', "cannot be called ''"),
        ('[parameters.x]\nchoices = ["A", nan]', "must be texts or finite numbers, got nan"),
        ('[parameters.x]\nchoices = ["1", 1]', "differ in what is written, not only in their type"),
        ('[parameters.x]\nchoices = ["True", true]', "differ in what is written"),
        ('[parameters.x]\nchoices = ["A", "A "]', "must not begin or end with a blank"),
        ('[parameters.x]\nchoices = ["A", ""]', "must not be empty"),
        (normal(1e300), "std must not exceed 1000 in size, 1000 times the range"),
        (normal("nan"), "std must be finite"),
        (normal("true"), "std must be a number"),
        (normal(10**400), "too many digits"),
        (normal(5.0, ", clip_low = 1e-300", 0.1) + "log = true", "clip_low must be at least 1e-11"),
        (normal(5.0, ", clip_high = 1e300"), "high must not exceed 1001 in size"),
        (RANGE.format(0, 1) + 'uncertainty = {kind = "beta", a = 1e-300, b = 1}', "a must be betw"),
    ],
)  # fmt: skip
def test_extremes_are_refused_with_their_line(text, message):
    with pytest.raises(FileError, match=message):
        settings(HEAD + text)


@pytest.mark.parametrize(
    "text",
    [
        RANGE.format(-1e100, 1e100),
        RANGE.format(0.0, 1e-100),
        RANGE.format(1e9, 1e9 + 2),
        RANGE.format(1e-100, 1e100) + "log = true\n",
        RANGE.format(0.0, 1.0) + "step = 1e-5\n",
        RANGE.format(-LARGEST_INTEGER, LARGEST_INTEGER) + 'type = "integer"\n',
        RANGE.format(1, LARGEST_INTEGER) + 'type = "integer"\nlog = true\n',
        '[parameters.x]\nchoices = ["1", 2, true]\n',
        normal(1000.0),
        normal(1e-300),
    ],
)
def test_what_is_accepted_can_be_asked_told_and_recommended(tmp_path, text):
    c = campaign(tmp_path, HEAD + text)
    c.settings.check()
    for value in (1e100, -1e100, 1.0):
        [experiment] = c.ask()
        c.tell(experiment.number, value)
    assert c.recommend().design.keys() == {"x"}
    table = c.export()
    assert len(c.import_table(table).numbers) == 3


@pytest.mark.filterwarnings("ignore::airbo.optimizer.recommendation.TooLittleDataWarning")
@pytest.mark.parametrize("surrogate", ["nominal", "default"])
def test_an_outlier_that_is_accepted_never_breaks_an_ask(tmp_path, surrogate):
    text = edited(LINE, '"nominal"', f'"{surrogate}"').replace("n_initial = 1000", "n_initial = 2")
    c = campaign(tmp_path, text)
    c.tell({"x": 0.5}, 1.0)
    c.tell({"x": 0.25}, 2.0, executed={"x": -999.0}, sure=True)
    c.tell({"x": 1.0 + FARTHEST_RANGES}, 1e100, allow_outside=True)
    [asked] = c.ask()
    assert 0 <= asked.design["x"] <= 1
    assert 0 <= c.recommend("anywhere").design["x"] <= 1


@pytest.mark.parametrize("value", [1e300, -1e6, 1.1 + FARTHEST_RANGES])
def test_designs_and_executed_inputs_out_of_all_proportion_are_refused(tmp_path, value):
    c = campaign(tmp_path)
    with pytest.raises(CampaignError, match=r"the design: x = .* no model can use it"):
        c.tell({"x": value}, 1.0, allow_outside=True)
    with pytest.raises(CampaignError, match=r"executed: x = .* no model can use it"):
        c.tell({"x": 0.5}, 1.0, executed={"x": value})
    assert c.experiments == []
