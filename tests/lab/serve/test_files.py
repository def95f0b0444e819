"""Tables, the report and a sheet to print, from the page."""

import io

import pandas as pd
import pytest

from airbo.lab import Campaign
from tests.lab.serve.client import Visitor

TABLE = """\
speed [m/min]\tdepth\tpasses\ttool\troughness
120\t0,5\t2\tB\t1,25
130\t0,7\t3\tA\t1,5
"""


def paste(visitor, table, **ticks):
    return visitor.send("/import", "/experiments", table=table, **ticks)


def told(file):
    with Campaign.open(file) as campaign:
        return {
            e.number: (e.design["speed"], e.outcomes["roughness"]) for e in campaign.experiments
        }


def saved(visitor, name):
    answer = visitor.request("GET", f"/files/{name}")
    assert answer.status == 200, answer.words
    assert answer.header("content-disposition").startswith("attachment; filename*=UTF-8''milling")
    return answer.body


# -- import


def test_rows_that_are_pasted_from_a_spreadsheet_are_imported_and_can_be_taken_back(ann, file):
    page = paste(ann, TABLE)
    assert page.said() == ["Imported 2 experiments, as number 0 to 1."]
    assert told(file) == {0: (120.0, 1.25), 1: (130.0, 1.5)}
    ann.post("/undo", page.forms["/undo"])
    assert told(file) == {}


def test_all_mistakes_of_a_table_are_named_with_their_lines_and_it_is_kept(ann, file):
    wrong = TABLE.replace("1,25", "rough").replace("130", "1300")
    page = paste(ann, wrong)
    assert page.status == 422
    [said] = page.said("mistake lines")
    assert "line 2" in said
    assert "line 3" in said
    assert "/tmp" not in page.text
    assert page.forms["/import"]["table"] == wrong
    assert told(file) == {}


def test_the_same_table_counts_once_unless_it_was_another_run(ann, file):
    paste(ann, TABLE)
    page = paste(ann, TABLE)
    assert page.status == 409
    assert "In the campaign already: 2 experiments." in page.words
    assert len(told(file)) == 2
    ann.post("/import", page.forms["/import"] | {"again": "yes"})
    assert len(told(file)) == 4


def test_rows_that_are_there_already_are_named_and_left_out(ann, file):
    paste(ann, TABLE)
    [said] = paste(ann, TABLE + "140\t0,9\t3\tA\t1,7\n").said()
    assert "In the campaign already, and left out: line 2-3, as experiment 0-1." in said
    assert told(file) == {0: (120.0, 1.25), 1: (130.0, 1.5), 2: (140.0, 1.7)}


def test_designs_outside_and_other_columns_need_a_tick(ann, file):
    odd = TABLE.replace("roughness", "roughness\twho").replace("1,5\n", "1,5\tann\n")
    odd = odd.replace("1,25", "1,25\tbob").replace("120", "20")
    page = paste(ann, odd)
    assert page.status == 422
    [said] = page.said("mistake lines")
    assert "unknown column 'who'" in said
    assert "--" not in said  # the page has boxes to tick, no options
    assert paste(ann, odd, others="yes").status == 422
    assert told(file) == {}
    assert paste(ann, odd, others="yes", outside="yes").status == 200
    assert told(file) == {0: (20.0, 1.25), 1: (130.0, 1.5)}


def test_nothing_pasted_is_explained(ann):
    assert paste(ann, "  ").said("mistake") == ["Paste a table first, with its header."]


# -- files to save


def test_what_is_saved_can_be_pasted_into_another_campaign(ann, file):
    paste(ann, TABLE)
    text = saved(ann, "experiments.csv").decode()
    ann.post("/undo", ann.get("/history").forms["/undo"])
    assert paste(ann, text).status == 200
    assert sorted(told(file).values()) == [(120.0, 1.25), (130.0, 1.5)]


def test_excel_and_history_hold_what_the_page_shows(ann):
    paste(ann, TABLE)
    ann.send("/note/0", "/experiment/0", note="new tool")
    table = pd.read_excel(io.BytesIO(saved(ann, "experiments.xlsx")))
    assert list(table["value"]) == [1.25, 1.5]
    assert "new tool" in saved(ann, "history.csv").decode()


def test_the_report_is_saved_whole_with_the_latest_history(models, ann, live):
    assert ann.request("GET", "/files/report.html").status == 503
    paste(ann, TABLE + "140\t0,9\t3\tA\t1,7\n")
    ann.get("/report")
    live.wait()
    ann.send("/note/0", "/experiment/0", note="said after the model had looked")
    page = saved(ann, "report.html").decode()
    assert page.startswith("<!DOCTYPE html>")
    assert "said after the model had looked" in page
    shown = ann.get("/report").text
    for key in ("answer", "along", "settings"):
        assert f'data-key="{key}"' in page
        assert f'data-key="{key}"' in shown
    assert 'data-key="history"' not in shown


@pytest.mark.parametrize("name", ["campaign.toml", "..%2fcampaign.toml", "campaign.db", ""])
def test_no_other_file_is_sent(ann, name):
    assert ann.request("GET", f"/files/{name}").status == 404


# -- a sheet to print


def test_the_sheet_has_a_row_for_every_pending_experiment_and_room_for_what_comes_out(
    ann, live, file
):
    assert "Nothing is waiting" in ann.get("/run-sheet").words
    ann.send("/ask", n="3")
    live.wait()
    page = ann.get("/run-sheet")
    assert page.text.count("<tr><td>") == 3
    assert page.text.count('class="blank"') == 3
    assert "roughness (µm)" in page.words
    for e in Campaign.open(file).experiments:
        assert f"{e.design['speed']:g}" in page.words


def test_who_only_looks_can_save_and_not_import(live):
    from tests.lab.serve.test_guard import TOKEN, everywhere

    worker = Visitor(everywhere(live), "lab-pc")
    worker.get(f"/?token={TOKEN}")
    boss = Visitor(everywhere(live, read_only=True), "lab-pc", cookies=dict(worker.cookies))
    assert saved(boss, "experiments.csv")
    assert boss.post("/import", {"table": TABLE}).status == 403
    assert "/import" not in boss.get("/experiments").forms
