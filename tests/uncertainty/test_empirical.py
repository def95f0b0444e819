import pytest
import torch

from airbo import uncertainty as unc


@pytest.fixture
def csv(tmp_path):
    def write(text):
        path = tmp_path / "log.csv"
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.mark.parametrize(
    "text",
    [
        "speed,depth\n0.1,-2\n0.2,3e-1\n",
        "0.1,-2\n0.2,3e-1",
        "\ufeffspeed, depth\r\n 0.1, -2\r\n\r\n0.2,0.3\r\n",
    ],
)
def test_a_csv_file_is_read_with_and_without_header(csv, text):
    assert unc.Empirical.from_csv(csv(text)) == unc.Empirical([[0.1, -2], [0.2, 0.3]])


def test_columns_of_a_csv_file_are_chosen_by_name_or_position(csv):
    path = csv("id,speed,depth\nx,1,2\ny,3,4\n")
    chosen = unc.Empirical([[2, 1], [4, 3]])
    assert unc.Empirical.from_csv(path, ["depth", "speed"]) == chosen
    assert unc.Empirical.from_csv(str(path), [2, 1]) == chosen


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file of deviations at .*nothing.csv"):
        unc.Empirical.from_csv(tmp_path / "nothing.csv")


@pytest.mark.parametrize(
    ("text", "columns", "message"),
    [
        ("", None, "holds no deviations"),
        ("\n\n", None, "holds no deviations"),
        ("speed,depth\n", None, "holds no deviations"),
        ("a,b\n1,2\n3\n", None, "row 3: expected 2 cells, got 1"),
        ("1,2\n3,4,5\n", None, "row 2: expected 2 cells, got 3"),
        ("a,b\n1,2\n3,four\n", None, "row 3, column 1: expected a finite number, got 'four'"),
        ("1,two\n3,4\n", None, "row 1, column 1: expected a finite number, got 'two'"),
        ("1,2\n3,\n", None, "row 2, column 1: expected a finite number, got ''"),
        ("a\n1\nnan\n", None, "row 3, column 0: expected a finite number, got 'nan'"),
        ("a\n1\ninf\n", None, "row 3, column 0: expected a finite number, got 'inf'"),
        ("a,b\n1,2\n", ["c"], "no column 'c'; the file has a, b"),
        ("1,2\n", ["a"], "the file has no header and 2 columns"),
        ("1,2\n", [2], "no column 2; the file has no header and 2 columns, counted from 0"),
    ],
)
def test_bad_files_are_refused_with_the_place(csv, text, columns, message):
    with pytest.raises(ValueError, match=message):
        unc.Empirical.from_csv(csv(text), columns)


def test_moments_are_those_of_the_log():
    X = torch.ones(1, 2, dtype=torch.float64)
    log = torch.tensor([[0.0, 1.0], [2.0, 5.0]], dtype=torch.float64)
    assert unc.Empirical(log).mean(X).tolist() == [[2.0, 4.0]]
    assert unc.Empirical(log).covariance(X).tolist() == [[[1.0, 2.0], [2.0, 4.0]]]
