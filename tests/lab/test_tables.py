"""Experiments that were done before: all rows or none, and mistakes by line."""

import io
import json
import math
import sys
from datetime import UTC, datetime, timedelta

import openpyxl
import optuna
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.distributions import FloatDistribution
from optuna.trial import TrialState

from airbo import uncertainty as unc
from airbo.lab import Campaign, CampaignError, FileError, StorageError, tables
from airbo.lab.entry import EntryReader
from airbo.lab.record import Record
from airbo.lab.tables import MOST_MISTAKES, read_experiments, to_csv, to_excel
from airbo.sheets import Sheet, as_it_was, harmless
from tests.lab.common import DESIGN, LINE, MILL, campaign, told, value_of
from tests.lab.common import settings as campaign_file

GOOD = "speed,depth,passes,tool,value\n100,0.5,2,A,1.5\n120,1.0,3,B,2.5\n"


def csv(folder, text):
    path = folder / "data.csv"
    path.write_text(text)
    return path


def mistakes(folder, text, **options):
    c = campaign(folder, MILL)
    with pytest.raises(FileError) as caught:
        c.import_table(csv(folder, text), **options)
    assert c.experiments == []
    return [(m.line, m.text) for m in caught.value.mistakes]


def test_rows_become_experiments(tmp_path):
    c = campaign(tmp_path, MILL)
    done = c.import_table(csv(tmp_path, GOOD))
    assert (done.numbers, done.already) == ([0, 1], False)
    assert [e.design["speed"] for e in c.experiments] == [100.0, 120.0]
    assert [value_of(e) for e in c.experiments] == [1.5, 2.5]
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
        ("1.5", "fast", 2, "roughness must be a number, got 'fast'"),
        ("1.0,3,B,2.5", "1.0,3,B,2.5,9", 3, "expected 5 cells as in the header, got 6"),
        ("2.5", "inf", 3, "roughness must be a finite number, got 'inf'"),
        ("2.5", "", 3, "the value is missing; for an experiment that failed"),
        (
            "value\n100,0.5,2,A,1.5",
            "value,status\n100,0.5,2,A,1.5,failed",
            2,
            "roughness is '1.5', but the status is 'failed': remove one of them",
        ),
        ("100", "1000", 2, "Parameter 'speed': value must be between 50 and 200, got 1000"),
        ("100", "", 2, "speed must be a number, got ''"),
        (",2,", ",2.5,", 2, "a whole number, got '2.5'"),
        (",B,", ",C,", 3, "tool must be one of 'A', 'B', got 'C'"),
        ("depth,", "deptth,", 1, "unknown column 'deptth'; did you mean 'depth'"),
        ("depth,", "speed,", 1, "columns 'speed', 'speed' for 'speed'"),
        ("speed,", "speed [km/h],", 1, "is in 'km/h', and the campaign file says 'm/min'"),
        (
            "value",
            "value,roughness",
            1,
            "columns 'value', 'roughness' for 'roughness': which one counts?",
        ),
        ("value", "result", 1, "no column 'value'"),
    ],
)
def test_a_mistake_is_named_with_its_line_and_nothing_is_taken(tmp_path, old, new, line, message):
    assert old in GOOD
    found = mistakes(tmp_path, GOOD.replace(old, new, 1))
    assert [n for n, said in found if message in said] == [line], found


def test_mistakes_of_the_header_hide_none_of_the_rows(tmp_path):
    wrong = GOOD.replace("depth", "deptth").replace("100", "x").replace("2.5", "y")
    assert {line for line, _ in mistakes(tmp_path, wrong)} == {1, 2, 3}
    wrong = GOOD.replace("value", "result").replace("100", "x")
    assert {line for line, _ in mistakes(tmp_path, wrong)} == {1, 2}


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
    assert sorted(e.design["speed"] for e in c.experiments) == [100, 120, 1000]


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
    done = other.import_table(path)
    assert (len(done.numbers), done.n_left_out) == (3, 2)
    assert told(other) == told(c)
    assert other.import_table(c.export()).already


NUMBERS = st.floats(0, 1, allow_subnormal=False)


@settings(max_examples=25)
@given(st.lists(st.tuples(NUMBERS, st.floats(-1e9, 1e9)), min_size=1, max_size=6))
def test_every_digit_survives_the_table(rows):
    table = pd.DataFrame([{"x": x, "value": value} for x, value in rows])
    reader = EntryReader(campaign_file(LINE), Record([], []))
    parsed = read_experiments(reader, table, False, {}, {}).rows
    assert [(r.entry.told.design["x"], r.entry.told.outcomes["value"]) for r in parsed] == rows
    assert [r.line for r in parsed] == list(range(2, len(rows) + 2))


def test_a_cell_that_is_longer_than_csv_allows_is_a_mistake(tmp_path):
    c = campaign(tmp_path)
    (tmp_path / "long.csv").write_text(f"x,value\n0.5,{'1' * 200_000}\n")
    with pytest.raises(
        FileError, match="line 2: this is not CSV: a cell has more than 131,072 characters"
    ):
        c.import_table(tmp_path / "long.csv")


PEOPLE = {
    "semicolons, decimal commas, units, the value by its name": (
        "speed [m/min];depth;passes;tool;roughness (um)\n100,5;0,5;2;A;1,5\n1.20e2;1;3;B;2,5\n"
    ),
    "tabs": "speed\tdepth\tpasses\ttool\tvalue\n100,5\t0,5\t2\tA\t1,5\n120\t1\t3\tB\t2,5\n",
    "a line for Excel": "sep=;\nspeed;depth;passes;tool;value;\n100.5;.5;2;A;1.5;\n120;1;3;B;2.5\n",
}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("text", PEOPLE.values(), ids=PEOPLE)
def test_csv_as_spreadsheets_write_it(tmp_path, text, encoding):
    path = tmp_path / "data.csv"
    path.write_bytes(text.encode(encoding))
    c = campaign(tmp_path, MILL)
    c.import_table(path)
    found = [(e.design["speed"], e.design["depth"], value_of(e)) for e in c.experiments]
    assert found == [(100.5, 0.5, 1.5), (120.0, 1.0, 2.5)]


def test_a_point_among_decimal_commas_is_not_guessed_at(tmp_path):
    text = "speed;depth;passes;tool;value\n100,5;0,5;2;A;1.234\n120;0.125;3;B;1.234,5\n"
    [(line, said)] = mistakes(tmp_path, text)
    assert line == 2
    assert "'1.234' may be 1234 or 1,234" in said


def test_mistakes_of_all_kinds_are_named_at_once(tmp_path):
    rows = ["x,0.5,2,A,1", "300,-1,2.5,C,1e200", "100,1e-90,2,A,y", "100,0.5,2,A", "100,0.5,2,A,1"]
    found = mistakes(tmp_path, "\n".join(["speed,depth,passes,tool,value", *rows]))
    assert [line for line, _ in found] == [2, 3, 3, 3, 3, 3, 4, 4, 5]


def test_a_table_full_of_mistakes_is_not_read_to_its_end(tmp_path, monkeypatch):
    def rows():
        for line in range(2, 10**9):
            assert line < 1000, "it should have stopped"
            yield line, ["x", "x"]

    monkeypatch.setattr(tables, "read_sheet", lambda path: Sheet(["x", "value"], rows()))
    with pytest.raises(
        FileError, match=f"stopped reading after {MOST_MISTAKES} mistakes"
    ) as caught:
        campaign(tmp_path).import_table("data.csv")
    assert len(caught.value.mistakes) == MOST_MISTAKES + 1


TEXTS = st.text(st.sampled_from(list("=+-@'\t\ra1;,\" \n")), min_size=1, max_size=5)


@given(TEXTS)
def test_no_cell_begins_like_a_formula_and_import_gives_it_back(text):
    cell = harmless(text)
    assert not cell.startswith(("=", "+", "-", "@", "\t", "\r"))
    assert as_it_was(cell) == text


DANGEROUS = ["=1+1", "+1", "-x", "@SUM", "'=1+1", "a,b;c", 'say "no"', "'quoted'", "7"]


@pytest.mark.parametrize("ending", ["csv", "xlsx"])
def test_an_export_is_imported_as_it_was(tmp_path, ending):
    text = MILL.replace('["A", "B"]', json.dumps([*DANGEROUS, 1, 2.5]))
    text = text.replace("[parameters.tool]", '[parameters."@tool"]')
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    c, other = campaign(tmp_path / "a", text), campaign(tmp_path / "b", text)
    for i, choice in enumerate([*DANGEROUS, 1, 2.5]):
        design = {"speed": 100 + i / 3, "depth": 0.5, "passes": 2, "@tool": choice}
        c.tell(design, -i / 7, executed={"speed": 99.0})
    path = tmp_path / f"out.{ending}"
    path.write_bytes(to_excel(c.export()) if ending == "xlsx" else to_csv(c.export()).encode())
    other.import_table(path)
    assert told(other) == told(c)
    assert {type(e.design["@tool"]) for e in other.experiments} == {str, int, float}


def test_excel_cells_hold_texts_and_no_formulas():
    content = to_excel(pd.DataFrame({"tool": ["=1+1", "A"], "value": [1.5, math.nan]}))
    sheet = openpyxl.load_workbook(io.BytesIO(content)).worksheets[0]
    assert [(cell.value, cell.data_type) for cell in sheet["A"]] == [
        ("tool", "s"), ("=1+1", "s"), ("A", "s")
    ]  # fmt: skip
    assert [cell.value for cell in sheet["B"]] == ["value", 1.5, None]


def test_files_of_other_spreadsheets_and_damaged_ones_are_named(tmp_path, monkeypatch):
    c = campaign(tmp_path, MILL)
    for name, message in {
        "x.ods": "save it as Excel",
        "x.xlsx": "this is not an Excel file",
    }.items():
        (tmp_path / name).write_bytes(b"PK\x03\x04nothing")
        with pytest.raises(CampaignError, match=message):
            c.import_table(tmp_path / name)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(CampaignError, match=r"pip install 'airbo\[excel\]'"):
        c.import_table(tmp_path / "x.xlsx")
    with pytest.raises(CampaignError, match=r"pip install 'airbo\[excel\]'"):
        to_excel(c.export())


def test_many_rows_are_written_together(tmp_path):
    c = campaign(tmp_path)
    rows = [
        f"{i / 150},{i if i % 7 else ''},{i / 150 if i % 2 else ''},{'' if i % 7 else 'failed'}"
        for i in range(150)
    ]
    path = csv(tmp_path, "\n".join(["x,value,executed_x,status", *rows]))
    done = c.import_table(path)
    assert done.numbers == list(range(150))
    reopened = Campaign.open(c.settings.path).experiments
    assert [e.number for e in reopened] == done.numbers
    assert [e.design["x"] for e in reopened] == [i / 150 for i in range(150)]
    assert [value_of(e) for e in reopened] == [None if i % 7 == 0 else float(i) for i in range(150)]
    assert [len(e.executed) for e in reopened] == [i % 2 for i in range(150)]
    assert all(
        e.asked and e.told and datetime.now(UTC) - e.told < timedelta(hours=1) for e in reopened
    )
    assert c.ask()[0].number == 150


def test_the_same_runs_from_csv_and_from_excel_count_once(tmp_path):
    c = campaign(tmp_path, MILL)
    rows = [[100 + i / 3, 0.1 + 0.2, 2, "A", i / 7] for i in range(5)]
    table = pd.DataFrame(rows, columns=["speed", "depth", "passes", "tool", "value"])
    (tmp_path / "runs.csv").write_text(to_csv(table))
    (tmp_path / "runs.xlsx").write_bytes(to_excel(table))
    assert not c.import_table(tmp_path / "runs.csv").already
    assert c.import_table(tmp_path / "runs.xlsx").already
    assert c.status().n_ok == 5


def test_rows_that_the_campaign_has_are_named_and_left_out(tmp_path):
    c = campaign(tmp_path, MILL)
    c.import_table(csv(tmp_path, GOOD))
    c.tell({"speed": 140.0, "depth": 1.5, "passes": 1, "tool": "A"}, {"roughness": 3.5})
    grown = GOOD + "140,1.5,1,A,3.5\n100,0.5,2,A,1.5\n100,0.5,2,A,1.6\n"
    done = c.import_table(csv(tmp_path, grown))  # line 5 is line 2 again: another run
    assert (done.numbers, done.already) == ([3, 4], False)
    assert done.repeated == {2: 0, 3: 1, 4: 2}
    assert "line 2-4, as experiment 0-2" in done.repeated_words
    assert [value_of(e) for e in c.experiments] == [1.5, 2.5, 3.5, 1.5, 1.6]
    part = "\n".join(grown.splitlines()[:4])  # a table that nobody imported, and nothing new
    assert c.import_table(csv(tmp_path, part)).already
    assert len(c.experiments) == 5
    assert len(c.import_table(csv(tmp_path, grown), again=True).numbers) == 5


def test_a_row_with_another_outcome_or_measurement_is_another_run(tmp_path):
    c = campaign(tmp_path, MILL)
    text = GOOD.replace("value", "executed_speed,value").replace("A,", "A,101,")
    c.import_table(csv(tmp_path, text.replace("B,", "B,,")))
    other = text.replace("101", "102").replace("B,", "B,,").replace("2.5", "2.6")
    assert c.import_table(csv(tmp_path, other)).repeated == {}
    failed = GOOD.replace("value", "status,value").replace("1.5\n", "failed,\n")
    c.import_table(csv(tmp_path, failed.replace("2.5", "ok,2.7")))
    assert c.import_table(csv(tmp_path, failed.replace("2.5", "ok,2.8"))).repeated == {2: 4}


def test_a_cell_may_carry_the_unit_of_its_column(tmp_path):
    value = 'value = { name = "yield", unit = "%" }'
    c = campaign(tmp_path, f"{value}\n{LINE}")
    c.import_table(csv(tmp_path, "x;yield\n0,5;62,1%\n0,25;55,4\n"))
    assert [value_of(e) for e in c.experiments] == [62.1, 55.4]


def test_columns_may_have_other_names(tmp_path):
    c = campaign(tmp_path, MILL)
    text = GOOD.replace("speed", "v_c [m/min]").replace("value", "Ra")
    columns = {"speed": "v_c [m/min]", "roughness": "Ra"}
    c.import_table(csv(tmp_path, text), columns=columns)
    assert [e.design["speed"] for e in c.experiments] == [100.0, 120.0]
    wrong_unit = csv(tmp_path, text.replace("[m/min]", "[km/h]"))
    with pytest.raises(FileError, match="in 'km/h', and the campaign file says 'm/min'"):
        c.import_table(wrong_unit, columns={**columns, "speed": "v_c [km/h]"})
    for wrong in ({"sped": "Ra"}, {"speed": "Rz"}):
        with pytest.raises(CampaignError, match="There is no"):
            c.import_table(csv(tmp_path, text), columns=wrong)


# -- studies of Optuna


@pytest.fixture
def study(tmp_path):
    """A study with a value, a failed trial and a running one."""
    url = f"sqlite:///{tmp_path / 'study.db'}"
    made = optuna.create_study(storage=url, study_name="milling")
    space = {"x": FloatDistribution(0.0, 1.0)}
    first, second, _ = (made.ask(space) for _ in range(3))
    made.tell(first, 1.5)
    made.tell(second, state=TrialState.FAIL)
    return url


def test_a_study_is_taken_over_with_what_is_pending(tmp_path, study):
    c = campaign(tmp_path)
    done = c.import_study(study, "milling")
    assert (done.numbers, done.already) == ([0, 1, 2], False)
    assert [e.outcome for e in c.experiments] == ["ok", "failed", "pending"]
    assert value_of(c.experiment(0)) == 1.5
    assert c.experiment(0).told.utcoffset() == timedelta(0)
    assert c.import_study(study, "milling").already
    assert len(c.optimizer().pending) == 1
    c.undo()
    assert [e for e in c.experiments if e.has_outcome] == []


def test_a_study_that_does_not_fit_is_refused_whole(tmp_path, study):
    c = campaign(tmp_path, MILL)
    with pytest.raises(CampaignError, match=r"does not fit .*\n  trial 0: .*'x'"):
        c.import_study(study, "milling")
    with pytest.raises(CampaignError, match="no study"):
        c.import_study(study, "drilling")
    assert c.experiments == []
