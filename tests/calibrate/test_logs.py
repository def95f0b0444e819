"""Logs as people have them are read, and their columns paired."""

import pandas as pd
import pytest

from airbo.calibrate import read_log
from airbo.calibrate.logs import find_pairs, named_pairs


@pytest.mark.parametrize(
    ("asked", "actual", "name"),
    [
        ("speed_asked", "speed_actual", "speed"),
        ("speed_sp", "speed_pv", "speed"),
        ("Speed Setpoint [rpm]", "Speed Actual [rpm]", "speed"),
        ("speed set point", "speed process value", "speed"),
        ("X1_CommandPosition", "X1_ActualPosition", "x_1_position"),
        ("target_temp", "measured_temp", "temp"),
        ("planned.flow", "executed.flow", "flow"),
        ("SollDrehzahl", "IstDrehzahl", "drehzahl"),
        ("Solldruck", "Istdruck", "druck"),
        ("flow", "executed_flow", "flow"),
        ("flow_sp", "flow", "flow"),
        ("asked", "actual", "asked"),
    ],
)
def test_columns_are_paired_by_their_names(asked, actual, name):
    (pair,) = find_pairs(["time", actual, "run", asked])
    assert (pair.name, pair.asked, pair.actual) == (name, asked, actual)


def test_columns_without_a_partner_are_no_pair():
    assert find_pairs(["time", "speed", "depth_sp", "value"]) == []


def test_pairs_can_be_named():
    columns = ["N", "M:x", "time"]
    (plain,) = named_pairs(["N=M:x"], columns)
    assert (plain.name, plain.asked, plain.actual) == ("n", "N", "M:x")
    (called,) = named_pairs(["speed:N=M:x"], columns)
    assert (called.name, called.asked, called.actual) == ("speed", "N", "M:x")


@pytest.mark.parametrize(
    ("text", "message"), [("N", "written as asked=actual"), ("N=P", "no column 'P'")]
)
def test_wrong_pairs_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        named_pairs([text], ["N", "M"])


TABLES = {
    "commas": b"t,a_sp,a_pv\n0,1.5,1.6\n1,2.5,\n2,-3e1,-29.5\n",
    "semicolons": "\ufefft;a_sp;a_pv\n0;1,5;1,6\n1;2,5;n/a\n2;-30;-29,5\n".encode(),
    "tabs": b"t\ta_sp\ta_pv\r\n0\t1.5\t1.6\r\n\r\n1\t2.5\tnan\r\n2\t-30\t-29.5\r\n",
    "Windows": "t;a_sp [°C];a_pv [°C];Prüfer\n0;1,5;1,6;ü\n1;2,5;;\n2;-30;-29,5;\n".encode(
        "cp1252"
    ),
    "quoted": b't,a_sp,a_pv\n0,"1,5","1,6"\n1,"2,5",\n2,-30,"-29,5"\n',
}


@pytest.mark.parametrize("content", TABLES.values(), ids=TABLES)
def test_every_form_of_csv_gives_the_same_numbers(tmp_path, content):
    path = tmp_path / "log.csv"
    path.write_bytes(content)
    log = read_log(path)
    assert log.asked["a"].tolist() == [1.5, 2.5, -30.0]
    assert log.actual["a"].tolist()[::2] == [1.6, -29.5]
    assert pd.isna(log.actual["a"].iloc[1])
    assert log.unused[0] == "t"


def test_thousands_have_points_where_decimals_have_commas(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("a_sp;a_pv\n1.234,5;1.235,0\n")
    assert read_log(path).asked["a"].tolist() == [1234.5]


def test_a_table_of_experiments_pairs_designs_with_executed_inputs(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("trial,speed,tool,executed_speed,value\n0,100,A,101.5,1\n1,120,B,,2\n")
    log = read_log(path)
    assert log.asked["speed"].tolist() == [100.0, 120.0]
    assert log.actual["speed"].tolist()[0] == 101.5
    assert log.unused == ["trial", "tool", "value"]


def test_rows_keep_the_numbers_they_have_in_the_file(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("a_sp,a_pv\n1,1\n\n2,2\n")
    assert read_log(path).asked.index.tolist() == [2, 4]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "it has none. Name them"),
        ("1,2\n3,4\n", "first row must name the columns"),
        ("a,b\n1,2\n", "it has a, b. Name them: --pair asked=actual"),
        ("a_sp,a_pv\n1,2\n3,four\n", "row 3, column a_pv: expected a number, got 'four'"),
        ("a_sp,a_pv\n1,inf\n", "row 2, column a_pv: expected a number, got 'inf'"),
        ("a_sp,a_pv\n1,2,3\n", "row 2: 3 cells, but 2 columns"),
        ("a_sp,a_sp,a_pv\n1,2,3\n", "several columns are called a_sp"),
    ],
)
def test_mistakes_are_named_with_row_and_column(tmp_path, content, message):
    path = tmp_path / "log.csv"
    path.write_text(content)
    with pytest.raises(ValueError, match=message):
        read_log(path)
