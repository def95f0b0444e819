"""What to expect at given settings: the same numbers as the optimizer has, and honest ones."""

import random
import statistics

import pytest

from airbo import Campaign, measures
from airbo.lab import CampaignError
from airbo.lab.prediction import FAR, nearest_words, reason, sentences
from airbo.words import percent
from tests.lab.common import write

pytestmark = pytest.mark.usefixtures("as_without_shape_checks", "few_draws")

FILE = """
name = "line"
n_initial = 1000
{goal}
[parameters.x]
low = 0.0
high = 10.0
unit = "mm"
uncertainty = {{ kind = "normal", std = 0.3 }}
[parameters.tool]
choices = ["A", "B"]
"""
SPEC = 'measure = "in-spec:4..6"\nvalue = { name = "Ra", unit = "µm" }\n'
MEAN = 'value = { name = "Ra", unit = "µm" }\n'
TAIL = 'measure = "cvar:0.9"\nvalue = { name = "Ra", unit = "µm" }\n'
SEVERAL = """
[outcomes.Ra]
goal = "maximize"
unit = "µm"
[outcomes.leak]
at_most = 4.0
probability = 0.9
"""


def campaign_of(folder, goal, n=24, seed=0):
    """Ra = x and leak = x / 2, where x is hit by ± 0.3 and measured with a noise of 0.2."""
    path = write(folder, FILE.format(goal=goal))
    rng = random.Random(seed)
    campaign = Campaign.open(path)
    for i in range(n):
        x = 10 * (i + 0.5) / n
        landed = x + rng.gauss(0, 0.3)
        values = {"Ra": landed + rng.gauss(0, 0.2), "leak": landed / 2}
        own = {name: v for name, v in values.items() if name in campaign.settings.outcomes}
        campaign.tell({"x": x, "tool": "A"}, own)
    return campaign


@pytest.fixture(scope="module")
def told(request, tmp_path_factory):
    """A campaign that nobody changes."""
    with campaign_of(tmp_path_factory.mktemp("told"), request.param) as campaign:
        yield campaign


@pytest.mark.parametrize("told", [MEAN, SPEC, TAIL, SEVERAL], indirect=True)
def test_numbers_are_those_of_the_optimizer(told):
    design = {"x": 5.2, "tool": "A"}
    found = told.predict(design)
    optimizer = told.optimizer()
    for name, p in found.outcomes.items():
        expected = optimizer.evaluate(design, measures.Mean(), outcome=name)
        assert (p.mean, p.std, p.interval) == (expected.mean, expected.std, expected.interval)
        own = optimizer.evaluate(design, outcome=name)
        if isinstance(own.measure, measures.Mean):
            assert p.decides is None
        else:
            assert p.decides == own
    assert found.to_dict()["design"] == design


def test_nine_of_ten_single_runs_lie_where_they_are_said_to(tmp_path):
    inside, rng = [], random.Random(1)
    for seed in range(4):
        folder = tmp_path / str(seed)
        folder.mkdir()
        with campaign_of(folder, MEAN, seed=seed) as campaign:
            for x in (2.0, 5.0):
                p = campaign.predict({"x": x, "tool": "A"}).outcomes["Ra"]
                low, high = p.single_run
                runs = [x + rng.gauss(0, 0.3) + rng.gauss(0, 0.2) for _ in range(1000)]
                inside.append(statistics.fmean(low <= run <= high for run in runs))
                assert p.interval[1] - p.interval[0] < 0.7 * (high - low)
    assert statistics.fmean(inside) == pytest.approx(0.9, abs=0.06)


@pytest.mark.parametrize("told", [SEVERAL], indirect=True)
def test_single_runs_reach_at_least_as_far_as_what_is_expected(told):
    for x in (0.1, 5.2, 9.9):
        for tool in "AB":  # nobody has tried B
            for p in told.predict({"x": x, "tool": tool}).outcomes.values():
                (low, high), (least, most) = p.single_run, p.interval
                assert low <= least < most <= high


@pytest.mark.parametrize("told", [SPEC], indirect=True)
def test_a_share_in_spec_is_that_of_the_recommendation(told):
    best = told.recommend()
    found = told.predict(best.design)
    assert found.outcomes["Ra"].decides.capability == best.capability


@pytest.mark.parametrize("told", [SPEC], indirect=True)
def test_a_share_in_spec_is_the_same_number_wherever_it_is_said(told):
    answer = told.adviser().answer()
    best, c = answer.best, answer.best.capability
    known = told.modelled()
    why = reason(told.optimizer(), told.settings, known, best.design)
    decides = told.predict(best.design).outcomes["Ra"].decides
    [budget] = answer.handover.budgets
    assert (best.mean, best.std) == (decides.mean, decides.std) == (c.share, c.share_std)
    assert best.outcomes["Ra"].std == c.share_std
    assert decides.interval == c.share_interval == (budget.in_spec.low, budget.in_spec.high)
    assert budget.in_spec.value == answer.handover.window.probability == c.share
    low, high = map(percent, c.share_interval)
    assert f"{percent(c.share)} ({low} to {high}) in spec" in why


@pytest.mark.parametrize("told", [MEAN, SPEC, SEVERAL], indirect=True)
def test_what_is_recommended_is_said_of_the_design_that_the_machine_can_hold(told):
    best = told.recommend("anywhere")
    is_tried = any(e.design == best.design for e in told.experiments)
    assert is_tried or best.design["x"] == round(best.design["x"], 2)
    found = told.predict(best.design).outcomes
    for name, estimate in best.outcomes.items():
        decides = found[name].decides
        if decides is not None and decides.capability is not None:
            assert estimate.capability.words == decides.capability.words
        else:
            same = pytest.approx(
                (found[name].mean, found[name].std), rel=1e-6
            )  # rounding of a batch
            assert (estimate.mean, estimate.std) == same


@pytest.mark.parametrize("told", [SEVERAL], indirect=True)
def test_a_limit_says_whether_it_is_kept(told):
    safe, unsafe = (told.predict({"x": x, "tool": "A"}) for x in (2.0, 9.0))
    assert safe.outcomes["leak"].holds > 0.9 > 0.1 > unsafe.outcomes["leak"].holds
    text = " ".join(sentences(told.settings, safe))
    assert "Required: at most 4 for 90% of executed inputs; the probability that" in text
    assert "Ra: expected" in text
    assert "9 of 10 single runs give" in text


@pytest.mark.parametrize("told", [MEAN], indirect=True)
def test_what_is_not_named_is_as_recommended(told):
    best = told.recommend().design
    assert told.predict({}).design == best
    assert told.predict({"x": 3.0}).design == {**best, "x": 3.0}


@pytest.mark.parametrize("told", [MEAN], indirect=True)
def test_the_nearest_experiments_are_named_and_far_ones_warn(told):
    near = told.predict({"x": told.experiment(7).design["x"], "tool": "A"})
    assert near.nearest[0] == (7, 0.0)
    assert [d for _, d in near.nearest] == sorted(d for _, d in near.nearest)
    assert not near.is_far
    far = told.predict({"x": 5.0, "tool": "B"})  # nobody has tried this tool
    assert far.nearest[0][1] == 1.0 > FAR
    assert "None is near" in nearest_words(far)


@pytest.mark.parametrize("told", [MEAN], indirect=True)
def test_what_cannot_be_predicted_is_refused(told):
    with pytest.raises(CampaignError, match=r"'x'.*between"):
        told.predict({"x": 11.0, "tool": "A"})
    assert told.predict({"x": 11.0, "tool": "A"}, allow_outside=True).design["x"] == 11.0
    with pytest.raises(CampaignError, match="Unknown parameter 'y'"):
        told.predict({"y": 1.0})


def test_nothing_is_predicted_before_there_are_values(tmp_path):
    with (
        Campaign.open(write(tmp_path, FILE.format(goal=MEAN))) as campaign,
        pytest.raises(CampaignError, match="no experiment gave a value"),
    ):
        campaign.predict({"x": 1.0, "tool": "A"})


@pytest.mark.parametrize("surrogate", ["nominal", "erbf", "ugp", "mmd"])
def test_every_surrogate_knows_single_runs(tmp_path, surrogate):
    goal = f'surrogate = "{surrogate}"\n{MEAN}'
    with campaign_of(tmp_path, goal, n=12) as campaign:
        found = campaign.predict({"x": 5.0, "tool": "A"})
    low, high = found.outcomes["Ra"].single_run
    assert low < found.outcomes["Ra"].interval[0] < found.outcomes["Ra"].interval[1] < high


@pytest.mark.parametrize(("n", "warns"), [(1, True), (2, True), (3, False)])
def test_few_experiments_say_nothing_of_the_spread(tmp_path, n, warns):
    with campaign_of(tmp_path, MEAN, n=n) as campaign:
        said = nearest_words(campaign.predict({"x": 5.0, "tool": "A"}))
    assert ("do not rely on the intervals" in said) == warns
