"""What a file may change about outcomes while a campaign runs: names, order and units."""

import pytest

from airbo import Campaign
from airbo.lab.errors import CampaignError, StorageError
from tests.lab.common import value_of
from tests.lab.test_outcomes import SEAM


@pytest.fixture
def campaign(tmp_path):
    (tmp_path / "campaign.toml").write_text(SEAM)
    with Campaign.open(tmp_path / "campaign.toml") as opened:
        yield opened


def told_without_names(folder):
    """A file that names outcomes, of a campaign that was told one value before it did."""
    path = folder / "campaign.toml"
    path.write_text(SEAM[: SEAM.index("[outcomes")])
    with Campaign.open(path) as before:
        before.tell({"x": 0.5}, 3.0)
    path.write_text(SEAM)
    return path


def test_a_campaign_that_had_one_value_may_get_names_for_outcomes(tmp_path):
    with Campaign.open(told_without_names(tmp_path)) as after:
        table = after.optimizer().observations
        exported = after.export()
    assert table["strength"].tolist() == exported["strength"].tolist() == [3.0]
    assert table["leak"].isna().all()


def test_what_was_measured_under_another_name_does_not_count_and_is_kept(campaign, tmp_path):
    campaign.tell({"x": 0.5}, {"strength": 3.0, "leak": 0.1})
    campaign.tell({"x": 0.6}, {"strength": 4.0})
    path = tmp_path / "campaign.toml"
    path.write_text(SEAM.replace("strength", "toughness"))
    with Campaign.open(path) as renamed:
        with pytest.raises(CampaignError, match=r"measured 'toughness'.* measured 'strength'"):
            renamed.recommend()
        known = renamed.optimizer().observations
        assert known["leak"].tolist() == [0.1]
        assert known["toughness"].isna().all()
        assert renamed.export()["strength"].tolist() == [3.0, 4.0]


def test_a_value_that_equals_one_under_a_former_name_counts(campaign, tmp_path):
    campaign.tell({"x": 0.5}, {"strength": 3.0, "leak": 3.0})
    path = tmp_path / "campaign.toml"
    path.write_text(SEAM.replace("leak", "loss"))
    with Campaign.open(path) as renamed:
        assert renamed.optimizer().observations["strength"].tolist() == [3.0]


def test_objectives_may_change_their_order(tmp_path):
    head = SEAM[: SEAM.index("[outcomes")]
    cost, scrap = ('[outcomes.cost]\ngoal = "minimize"\n', '[outcomes.scrap]\ngoal = "minimize"\n')
    path = tmp_path / "campaign.toml"
    path.write_text(head + cost + scrap)
    with Campaign.open(path) as before:
        before.tell({"x": 0.5}, {"cost": 3.0})
    path.write_text(head + scrap + cost)
    with Campaign.open(path) as after:
        known = after.optimizer().observations
        assert known["cost"].tolist() == [3.0]
        assert known["scrap"].isna().all()
        assert after.tell(0, {"cost": 3.0}).done == "already told"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('unit = "MPa"', 'unit = "psi"', "unit of 'strength' was 'MPa' and is now 'psi'"),
        ('unit = "MPa"', "", "unit of 'strength' was 'MPa' and is gone"),
    ],
)
def test_values_in_one_unit_are_not_read_in_another(campaign, tmp_path, old, new, message):
    path = tmp_path / "campaign.toml"
    path.write_text(SEAM.replace(old, new))
    Campaign.open(path).close()  # nothing was told yet
    campaign.tell({"x": 0.4}, {"leak": 0.1})
    Campaign.open(path).close()  # no strength was told yet
    campaign.tell({"x": 0.5}, {"strength": 3.0})
    with pytest.raises(StorageError, match=message):
        Campaign.open(path)
    campaign.undo()
    Campaign.open(path).close()


def test_the_unit_of_a_value_stays_when_it_gets_a_name(tmp_path):
    path = tmp_path / "campaign.toml"
    head, outcomes = SEAM[: SEAM.index("[outcomes")], SEAM[SEAM.index("[outcomes") :]
    one = 'value = { name = "strength", unit = "psi" }\n'
    path.write_text(one + head)
    with Campaign.open(path) as before:
        before.tell({"x": 0.5}, 3.0)
    path.write_text(one.replace("psi", "MPa") + head)
    with pytest.raises(StorageError, match="unit of 'strength' was 'psi' and is now 'MPa'"):
        Campaign.open(path)
    path.write_text(head + outcomes)
    with pytest.raises(StorageError, match="unit of 'strength' was 'psi' and is now 'MPa'"):
        Campaign.open(path)
    path.write_text(head + outcomes.replace("MPa", " PSI".lower()))  # only spelled otherwise
    Campaign.open(path).close()


def test_a_unit_may_be_added_and_is_known_for_a_name_that_comes_back(campaign, tmp_path):
    path = tmp_path / "campaign.toml"
    campaign.tell({"x": 0.5}, {"strength": 3.0, "leak": 0.1})
    path.write_text(SEAM.replace("strength", "toughness") + 'unit = "ml"\n')  # of the leak
    with Campaign.open(path) as renamed:
        renamed.tell(0, {"toughness": 4.0})
    path.write_text(SEAM.replace("MPa", "psi"))
    with pytest.raises(StorageError, match=r"'strength' was 'MPa'.*'leak' was 'ml' and is gone"):
        Campaign.open(path)


def test_what_was_told_without_a_name_is_completed_and_not_lost(tmp_path):
    with Campaign.open(told_without_names(tmp_path)) as after:
        assert after.tell(0, {"strength": 3.0}).done == "already told"
        after.tell(0, {"leak": 0.1})
        assert dict(after.experiment(0).outcomes) == {"strength": 3.0, "leak": 0.1}
        assert value_of(after.experiment(0)) == 3.0


def test_an_export_keeps_outcomes_that_the_file_no_longer_names(campaign, tmp_path):
    campaign.tell({"x": 0.5}, {"strength": 3.0, "leak": 0.1})
    path = tmp_path / "campaign.toml"
    path.write_text('value = { unit = "MPa" }\n' + SEAM[: SEAM.index("[outcomes")])
    with Campaign.open(path) as one:
        one.tell({"x": 0.6}, 4.0)
        table = one.export()
    assert table["strength"].tolist()[:1] == [3.0]
    assert table["leak"].tolist()[:1] == [0.1]
    assert table["value"].tolist()[1:] == [4.0]
