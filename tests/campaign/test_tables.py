"""Experiments that were done before: all rows or none, and mistakes by line."""

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airbo import uncertainty as unc
from airbo.campaign import FileError, StorageError
from airbo.campaign.tables import parse_rows, to_csv
from airbo.space import Space
from tests.campaign.common import DESIGN, MILL, campaign, told

GOOD = "speed,depth,passes,tool,value\n100,0.5,2,A,1.5\n120,1.0,3,B,2.5\n"


def csv(folder, text):
    path = folder / "data.csv"
    path.write_text(text)
    return path


def mistakes(folder, text, **options):
    c = campaign(folder, MILL)
    with pytest.raises(FileError) as caught:
        c.import_table(csv(folder, text), **options)
    assert c.study.get_trials() == []
    return [(m.line, m.text) for m in caught.value.mistakes]


def test_rows_become_experiments(tmp_path):
    c = campaign(tmp_path, MILL)
    done = c.import_table(csv(tmp_path, GOOD))
    assert (done.numbers, done.already) == ([0, 1], False)
    assert [e.design["speed"] for e in c.experiments] == [100.0, 120.0]
    assert [e.value for e in c.experiments] == [1.5, 2.5]
    assert c.experiment(0).uncertainty is not None
    assert len(c.optimizer().observations) == 2


def test_the_same_table_twice_counts_once(tmp_path):
    c = campaign(tmp_path, MILL)
    c.import_table(csv(tmp_path, GOOD))
    same = c.import_table(csv(tmp_path, GOOD.replace("100,", " 100.0,") + "\n\n"))
    assert (same.numbers, same.already) == ([0, 1], True)
    assert c.status().n_ok == 2
    for n in (4, 6):
        assert not c.import_table(csv(tmp_path, GOOD), again=True).already
        assert c.status().n_ok == n


def test_failed_rows_measured_inputs_and_semicolons(tmp_path):
    c = campaign(tmp_path, MILL)
    header = "tool;speed;depth;passes;value;status;executed_speed\n"
    text = header + "A;100;1;1;;failed;\nB;99;1;1;2;;98.5\n"
    c.import_table(csv(tmp_path, text), uncertainty={"speed": unc.Uniform(0, 1)})
    assert [e.outcome for e in c.experiments] == ["failed", "ok"]
    assert dict(c.experiment(1).executed) == {"speed": 98.5}
    assert c.experiment(1).uncertainty[0]["uncertainty"]["kind"] == "Uniform"


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("1.5", "fast", 2, "value must be a number, got 'fast'"),
        ("1.0,3,B,2.5", "1.0,3,B,2.5,", 3, "expected 5 cells as in the header, got 6"),
        ("2.5", "inf", 3, "value must be a finite number, got 'inf'"),
        ("2.5", "", 3, "the value is missing; for an experiment that failed"),
        ("100", "1000", 2, "Parameter 'speed': value must be between 50 and 200, got 1000"),
        ("100", "", 2, "speed must be a number, got ''"),
        (",2,", ",2.5,", 2, "integer, got 2.5"),
        (",B,", ",C,", 3, "tool must be one of 'A', 'B', got 'C'"),
        ("depth,", "deptth,", 1, "unknown column 'deptth'; did you mean 'depth'"),
        ("depth,", "speed,", 1, "two columns 'speed'"),
        ("value", "result", 1, "no column 'value'"),
    ],
)
def test_a_mistake_is_named_with_its_line_and_nothing_is_taken(tmp_path, old, new, line, message):
    assert old in GOOD
    found = mistakes(tmp_path, GOOD.replace(old, new, 1))
    assert [n for n, said in found if message in said] == [line], found


def test_all_mistakes_are_named_at_once(tmp_path):
    found = mistakes(tmp_path, GOOD.replace("100", "x").replace("1.5", "y").replace("B", "C"))
    assert [line for line, _ in found] == [2, 2, 3]


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "no column"), ("a\n1\n", "no column"), (GOOD.splitlines()[0], "no experiments in it")],
)
def test_tables_without_rows_are_refused(tmp_path, text, message):
    assert any(message in said for _, said in mistakes(tmp_path, text))


def test_files_that_cannot_be_read_are_named(tmp_path):
    c = campaign(tmp_path, MILL)
    with pytest.raises(StorageError, match="cannot be read: No such file"):
        c.import_table(tmp_path / "none.csv")
    (tmp_path / "x.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FileError, match="not a text file"):
        c.import_table(tmp_path / "x.csv")


def test_other_columns_and_ranges_are_taken_if_that_is_meant(tmp_path):
    c = campaign(tmp_path, MILL)
    text = GOOD.replace("value", "value,who").replace("1.5", "1.5,ann").replace("2.5", "2.5,bob")
    c.import_table(csv(tmp_path, text), ignore_others=True)
    c.import_table(csv(tmp_path, GOOD.replace("100", "1000")), allow_outside=True)
    assert sorted(e.design["speed"] for e in c.experiments) == [100, 120, 120, 1000]


def test_an_export_can_be_imported_elsewhere(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    c, other = campaign(tmp_path / "a", MILL), campaign(tmp_path / "b", MILL)
    c.ask(4)
    c.tell(0, 0.1 + 0.2, executed={"speed": 100 / 3})
    c.fail(1)
    c.give_up(2)
    c.tell(DESIGN, -1e-17)
    path = csv(tmp_path, to_csv(c.export()))
    assert len(other.import_table(path).numbers) == 3
    assert told(other) == told(c)
    assert other.import_table(c.export()).already


NUMBERS = st.floats(0, 1, allow_subnormal=False)


@settings(max_examples=25)
@given(st.lists(st.tuples(NUMBERS, st.floats(-1e9, 1e9)), min_size=1, max_size=6))
def test_every_digit_survives_the_table(rows):
    table = pd.DataFrame([{"x": x, "value": value} for x, value in rows])
    parsed = parse_rows("table", to_csv(table), Space({"x": (0.0, 1.0)}))
    assert [(r.design["x"], r.value) for r in parsed] == rows
    assert [r.line for r in parsed] == list(range(2, len(rows) + 2))


def test_an_interrupted_import_is_named_until_it_is_repeated(tmp_path, monkeypatch):
    c = campaign(tmp_path, MILL)

    def stop(key, value):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(c.study, "set_user_attr", stop)
        with pytest.raises(KeyboardInterrupt):
            c.import_table(csv(tmp_path, GOOD))
    assert c.status().n_ok == 0
    assert "An import of 2 or more rows is under way" in c.status().notes[0]
    assert c.ask()[0].number == 2
    c.import_table(csv(tmp_path, GOOD))
    assert (c.status().n_ok, c.status().notes) == (2, [])


def test_a_cell_that_is_longer_than_csv_allows_is_a_mistake(tmp_path):
    c = campaign(tmp_path)
    (tmp_path / "long.csv").write_text(f"x,value\n0.5,{'1' * 200_000}\n")
    with pytest.raises(FileError, match=r"line 2: this is not CSV: field larger"):
        c.import_table(tmp_path / "long.csv")
