"""Ask, tell, fail, correct, recommend; and what changes in the file mean."""

import pytest

import airbo
from airbo import Campaign
from airbo import uncertainty as unc
from airbo.lab import AlreadyTold, CampaignError, FileError, StorageError
from tests.lab.common import DESIGN, LINE, MILL, campaign, edited, told, value_of, write


def hill(design):
    return -((design["x"] - 0.3) ** 2)


def values(c):
    return list(c.optimizer().observations[c.settings.value_name])


def test_what_is_asked_is_pending_until_it_is_told(tmp_path):
    c = campaign(tmp_path, MILL)
    first, second = c.ask(2)
    assert [e.number for e in c.status().pending] == [0, 1]
    assert c.tell(first.number, 2.5).done == "told"
    assert [e.number for e in c.status().pending] == [1]
    assert value_of(c.experiment(0)) == 2.5
    assert c.experiment(0).design == first.design
    c.settings.space.check(first.design)
    assert c.optimizer().pending == [second.design]
    assert values(c) == [2.5]


def test_another_process_sees_the_same(tmp_path):
    c = campaign(tmp_path, MILL)
    c.ask(3)
    c.tell(0, 1.0, executed={"speed": 99.0})
    c.fail(1)
    other = Campaign.open(c.settings.path)
    assert other.experiments == c.experiments
    assert airbo.Campaign is Campaign


def test_designs_depend_on_the_seed_and_on_what_was_told(tmp_path):
    def designs(folder, seed):
        folder.mkdir()
        c = campaign(folder, edited(edited(LINE, "n_initial = 1000", "n_initial = 3"), "[par",
                                    f"seed = {seed}\n[par"))  # fmt: skip
        for _ in range(5):
            [e] = c.ask()
            c.tell(e.number, hill(e.design))
        return [e.design["x"] for e in c.experiments]

    first = designs(tmp_path / "a", 1)
    assert designs(tmp_path / "b", 1) == first
    assert designs(tmp_path / "c", 2) != first


def test_stopped_and_opened_again_asks_what_it_would_have_asked(tmp_path):
    text = edited(LINE, "n_initial = 1000", "n_initial = 3")
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    one, paths = campaign(tmp_path / "a", text), write(tmp_path / "b", text)
    for _ in range(6):
        other = Campaign.open(paths)
        for c in (one, other):
            [e] = c.ask()
            c.tell(e.number, hill(e.design))
    assert told(one) == told(other)


def test_the_same_report_twice_counts_once(tmp_path):
    c = campaign(tmp_path)
    c.ask()
    c.tell(0, 1.5, executed={"x": 0.4})
    assert c.tell(0, 1.5).done == "already told"
    assert c.tell(0, 1.5, executed={"x": 0.4}).done == "already told"
    with pytest.raises(AlreadyTold, match=r"reported before: 1.5.*correct"):
        c.tell(0, 1.6)
    with pytest.raises(AlreadyTold):
        c.tell(0, 1.5, executed={"x": 0.5})
    with pytest.raises(AlreadyTold):
        c.fail(0)
    assert values(c) == [1.5]


def test_a_correction_replaces_and_can_be_corrected(tmp_path):
    c = campaign(tmp_path)
    c.ask(2)
    c.tell(0, 1.5)
    c.tell(1, 2.5)
    for value in (3.5, 4.5, None, 5.5):
        assert c.tell(0, value, correct=True).done == "corrected"
        assert value_of(c.experiment(0)) == value
        assert c.tell(0, value).done == "already told"
        assert sorted(v for v in values(c) if v == v) == [v for v in (2.5, value) if v is not None]
    assert [e.number for e in c.experiments] == [0, 1]


def test_a_design_is_found_by_its_values_as_printed(tmp_path):
    c = campaign(tmp_path, MILL)
    [e] = c.ask()
    printed = {n: float(f"{v:.6g}") if isinstance(v, float) else v for n, v in e.design.items()}
    assert c.tell(printed, 1.0).experiment.number == e.number
    assert c.tell(printed, 1.0).done == "already told"
    assert c.tell(DESIGN, 2.0).done == "added"
    assert c.tell(DESIGN, 2.0).done == "already told"
    assert c.tell(DESIGN, 2.0, again=True).done == "added"
    assert c.tell(DESIGN, 3.0).done == "added"
    assert sorted(values(c)) == [1.0, 2.0, 2.0, 3.0]


def test_several_outcomes_are_told_only_if_all_are_right(tmp_path):
    c = campaign(tmp_path)
    c.ask(2)
    with pytest.raises(CampaignError, match="There is no experiment 7"):
        c.tell_all([(0, 1.0), (7, 2.0)])
    assert c.status().n_ok == 0
    assert [t.done for t in c.tell_all([(0, 1.0), (1, 2.0)])] == ["told", "told"]
    assert [t.done for t in c.tell_all([(0, 1.0), (1, 2.0)])] == ["already told"] * 2


def test_failed_is_not_given_up(tmp_path):
    c = campaign(tmp_path)
    c.ask(2)
    c.fail(0)
    c.give_up(1)
    assert [e.outcome for e in c.experiments] == ["failed", "given up"]
    assert list(c.optimizer().observations["status"]) == ["failed"]
    assert c.optimizer().pending == []
    assert c.give_up(1).done == "already told"
    with pytest.raises(AlreadyTold, match="Experiment 0 was reported before: failed"):
        c.give_up(0)
    told = c.give_up(0, correct=True)
    assert (told.done, told.changes) == ("corrected", ["failed → given up"])
    assert c.optimizer().observations.empty


def test_what_was_given_up_can_be_told_late(tmp_path):
    c = campaign(tmp_path)
    c.ask()
    c.give_up(0)
    assert c.tell(0, 1.5).done == "told"
    assert value_of(c.experiment(0)) == 1.5
    assert values(c) == [1.5]


@pytest.mark.parametrize(
    ("value", "message"),
    [("fast", "must be a number"), (float("inf"), "finite"), (True, "number"), (1e200, "exceed")],
)
def test_values_that_are_no_measurements_are_refused(tmp_path, value, message):
    c = campaign(tmp_path)
    c.ask()
    with pytest.raises(CampaignError, match=message):
        c.tell(0, value)
    assert c.experiment(0).is_pending


@pytest.mark.parametrize(
    ("what", "options", "message"),
    [
        (5, {}, r"There is no experiment 5 \(pending: 0\)"),
        ({"speed": 1.0}, {}, "Parameter 'speed': value must be between"),
        ({**DESIGN, "speed": 1}, {}, "must be between 50 and 200"),
        ({"speed": 100.0}, {}, "'depth' is missing"),
        ({**DESIGN, "tool": "C"}, {}, "expected one of"),
        (0, {"executed": {"sped": 1}}, "unknown parameter 'sped'; did you mean 'speed'"),
        (0, {"executed": {"tool": "A"}}, "'tool' is a choice"),
        (0, {"executed": {"speed": float("inf")}}, "finite"),
        (0, {"uncertainty": unc.Normal(1.0)}, "by parameter name"),
        (0, {"uncertainty": {"sped": unc.Normal(1.0)}}, "unknown parameter 'sped'"),
        (0, {"uncertainty": {"depth": unc.Normal(9.0)}}, "logarithmic"),
    ],
)
def test_reports_that_no_model_could_use_are_refused(tmp_path, what, options, message):
    c = campaign(tmp_path, MILL)
    c.ask()
    with pytest.raises(CampaignError, match=message):
        c.tell(what, 1.0, **options)
    assert told(c) == []


def test_a_design_outside_is_taken_if_that_is_meant(tmp_path):
    c = campaign(tmp_path, MILL)
    c.tell({**DESIGN, "speed": 300.0}, 1.0, allow_outside=True)
    assert c.experiment(0).design["speed"] == 300.0
    c.ask()


def test_the_recommendation_is_that_of_the_optimizer(tmp_path):
    c = campaign(tmp_path, edited(LINE, "n_initial = 1000", "n_initial = 4"))
    with pytest.raises(CampaignError, match="nothing to recommend yet"):
        c.recommend()
    for _ in range(6):
        [e] = c.ask()
        c.tell(e.number, hill(e.design))
    mine, best = c.recommend("observed"), c.optimizer().recommend("observed")
    assert mine.design == best.design
    assert mine.mean == pytest.approx(best.mean, abs=1e-6)
    assert abs(c.recommend("anywhere").design["x"] - 0.3) < 0.2
    assert value_of(c.status().best) == max(values(c))


# -- the file changes


def test_trials_keep_the_uncertainty_they_were_made_under(tmp_path):
    c = campaign(tmp_path)
    c.ask(2)
    c.tell(0, 1.0)
    changed = campaign(tmp_path, edited(LINE, "std = 0.05", "std = 0.2"))
    changed.tell(1, 2.0)
    changed.tell({"x": 0.9}, 3.0)
    changed.tell({"x": 0.8}, 3.0, uncertainty={"x": unc.Uniform(0, 1)})
    described = [unc.from_dict(e.uncertainty[0]["uncertainty"]) for e in changed.experiments]
    assert described == [unc.Normal(0.05), unc.Normal(0.05), unc.Normal(0.2), unc.Uniform(0, 1)]
    [note] = [c.text for c in changed.history() if c.what == "changed"]
    assert note == "the file: uncertainty"
    under = [o.uncertainty for o in changed.optimizer()._history.observations]
    assert [u.blocks[0] for u in under] == described


def test_a_changed_range_keeps_what_lies_outside(tmp_path):
    c = campaign(tmp_path)
    for x in (0.1, 0.5, 0.95):
        c.tell({"x": x}, hill({"x": x}))
    narrow = edited(edited(LINE, "high = 1.0", "high = 0.9"), "n_initial = 1000", "n_initial = 3")
    changed = campaign(tmp_path, narrow)
    assert len(values(changed)) == 3
    designs = [e.design["x"] for e in changed.ask(2)]
    assert all(0 <= x <= 0.9 for x in designs)
    wide = campaign(tmp_path, edited(LINE, "high = 1.0", "high = 3.0"))
    wide.ask()
    assert len(values(wide)) == 3


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[parameters.x]", "[parameters.z]", "parameter 'x' is gone; parameter 'z' is new"),
        ("[par", '[parameters.y]\nlow = 0\nhigh = 1\n[par', "parameter 'y' is new"),
        ("[par", 'direction = "minimize"\n[par', "direction was 'maximize' and is now 'minimize'"),
        ("low = 0.0\nhigh = 1.0", 'low = 0\nhigh = 1\ntype = "integer"', "now 'integer'"),
        ("low = 0.0", "low = 0.5\nlog = true", "was linear and is now logarithmic"),
        ('"mm"', '"cm"', "unit of 'x' was 'mm' and is now 'cm'"),
    ],
)  # fmt: skip
def test_another_space_or_direction_is_refused(tmp_path, old, new, message):
    campaign(tmp_path).tell({"x": 0.5}, 1.0)
    with pytest.raises(StorageError, match=message):
        campaign(tmp_path, edited(LINE, old, new))
    assert len(campaign(tmp_path).experiments) == 1


def test_changed_choices_are_refused(tmp_path):
    campaign(tmp_path, MILL).tell(DESIGN, 1.0)
    with pytest.raises(StorageError, match="choices of 'tool' lack 'B'"):
        campaign(tmp_path, edited(MILL, '"B"]', '"C"]'))


def test_another_choice_may_come_later(tmp_path):
    campaign(tmp_path, MILL).tell(DESIGN, 1.0)
    c = campaign(tmp_path, edited(MILL, '"B"]', '"B", "C"]'))
    c.tell({**DESIGN, "tool": "C"}, 2.0)
    assert [h.text for h in c.history() if h.what == "changed"] == ["the file: parameters"]
    assert values(c) == [1.0, 2.0]
    assert {e.design["tool"] for e in c.ask(8)} == {"A", "B", "C"}


def test_the_order_of_parameters_does_not_matter(tmp_path):
    c = campaign(tmp_path, MILL)
    [e] = c.ask()
    c.tell(e.number, 1.0)
    head, *parameters = MILL.split("[parameters.")
    turned = head + "".join(f"[parameters.{p.strip()}\n\n" for p in reversed(parameters))
    other = campaign(tmp_path, turned)
    assert other.experiment(0).design == e.design
    assert values(other) == [1.0]


def test_a_correction_keeps_what_it_does_not_speak_of(tmp_path):
    c = campaign(tmp_path)
    [asked] = c.ask()
    wide = {"x": unc.Normal(0.2)}
    before = c.tell(0, 1.0, executed={"x": 0.9}).experiment
    assert c.tell(0, 1.0).done == "already told"
    assert c.tell(0, 1.0, correct=True).done == "already told"
    told = c.tell(0, 2.0, correct=True)
    assert (told.done, told.changes) == ("corrected", ["1 → 2"])
    assert told.experiment.executed == {"x": 0.9}
    assert (told.experiment.asked, told.experiment.told) == (asked.asked, before.told)
    told = c.tell(0, 1.0, correct=True, executed={})
    assert told.changes == ["2 → 1", "measured x 0.9 → not measured"]
    assert c.experiment(0).executed == {}
    with pytest.raises(AlreadyTold):
        c.tell(0, 1.0, uncertainty=wide)
    assert c.tell(0, 1.0, uncertainty=wide, correct=True).done == "corrected"
    assert c.tell(0, 1.0, uncertainty=wide, correct=True).done == "already told"
    [seen] = c.optimizer()._history.observations
    assert seen.uncertainty is not None
    assert c.tell(0, 1.0).done == "already told"


def test_several_are_given_up_or_none(tmp_path):
    c = campaign(tmp_path)
    c.ask(3)
    c.tell(1, 1.0)
    for wrong, error in ((99, CampaignError), (1, AlreadyTold)):
        with pytest.raises(error):
            c.tell_all([(0, None), (wrong, None)], gave_up=True)
        assert c.experiment(0).is_pending
    both = [(0, None), (2, None)]
    assert [t.done for t in c.tell_all(both, gave_up=True)] == ["told", "told"]
    assert [t.done for t in c.tell_all(both, gave_up=True)] == ["already told", "already told"]
    with pytest.raises(CampaignError, match="Only an experiment that has a number"):
        c.tell_all([({"x": 0.5}, None)], gave_up=True)


def test_a_mistake_that_only_a_model_sees_stops_asking_and_loses_nothing_told(tmp_path):
    campaign(tmp_path, MILL).ask(2)
    log = 'log = true\nuncertainty = { kind = "normal", std = 9.0 }'
    c = campaign(tmp_path, edited(MILL, "log = true", log))
    assert c.tell(0, 1.5).done == "told"
    for refused in (c.ask, c.recommend, lambda: c.tell(DESIGN, 2.0)):
        with pytest.raises(FileError, match=r"line \d+: .*logarithmic.*clip_low"):
            refused()
    mended = campaign(tmp_path, MILL)
    assert values(mended) == [1.5]
    assert [e.number for e in mended.ask()] == [2]


def test_an_uncertainty_that_a_model_refuses_is_not_told(tmp_path):
    c = campaign(tmp_path, MILL)
    c.ask()
    described = [{"parameters": ["depth"], "uncertainty": {"kind": "Normal", "std": 9.0}}]
    with pytest.raises(CampaignError, match="logarithmic"):
        c.tell(0, 1.0, uncertainty=described)
    assert c.tell(0, 1.0, uncertainty=c.settings.described_uncertainty).done == "told"


def test_part_of_what_is_missed_together_may_be_measured_alone(tmp_path):
    group = '[[uncertainty]]\nparameters = ["x", "y"]\nkind = "ring"\nradius = 0.01\n'
    text = edited(LINE, 'uncertainty = { kind = "normal", std = 0.05 }\n', "")
    c = campaign(tmp_path, f"{text}[parameters.y]\nlow = 0\nhigh = 1\n{group}")
    c.ask()
    assert c.tell(0, 1.0, executed={"x": 0.5}).done == "told"
    assert c.tell({"x": 0.2, "y": 0.5}, 1.0, executed={"x": 0.2, "y": 0.5}).done == "added"


def test_the_same_new_design_twice_in_one_report_counts_once(tmp_path):
    c = campaign(tmp_path)
    told_twice = c.tell_all([({"x": 0.5}, 1.0), ({"x": 0.5}, 1.0)])
    assert [t.done for t in told_twice] == ["added", "already told"]
    assert values(c) == [1.0]
