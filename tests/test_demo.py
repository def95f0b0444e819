"""The main job, in small."""

import sys

import pytest

from airbo import demo


@pytest.mark.slow
def test_the_demo_ends_with_a_table_and_a_picture(monkeypatch, tmp_path, capsys):
    picture = tmp_path / "demo.png"
    monkeypatch.setattr(sys, "argv", ["demo", "--budget", "12", "--picture", str(picture)])
    demo.main()
    shown = capsys.readouterr().out
    assert "robust regret" in shown
    assert "true robust" in shown
    assert picture.stat().st_size > 10_000
