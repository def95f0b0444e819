"""The benchmark measures what it says, in its quickest form."""

from experiments.speed import __main__ as bench
from experiments.speed import asks, timing


def test_the_plain_loop_and_ours_see_the_same_data_and_the_same_box():
    row = next(r for r in asks.ROWS if r.kinds == "if")
    X, Z, Y = row.observe(8, seed=0)
    assert len(row.optimizer(X, Y).observations) == 8
    assert (X[:, 0] == X[:, 0].round()).all()
    assert ((Z >= 0) & (Z <= 1)).all()
    assert asks.plain(Z, Y).shape == (1, row.d)


def test_a_row_says_whether_its_aim_was_reached():
    found = [
        {"label": "a", "aim": 2.5, "plain": 1.0, "ask": 2.0, "ratio": 2.0, "megabytes": None},
        {"label": "b", "aim": 3, "plain": 1.0, "ask": 6.0, "ratio": 6.0, "megabytes": 900.0},
    ]
    text = bench.page(found, bench.record.provenance())
    assert "| ≤ 2.5 | yes |" in text
    assert "| ≤ 3 | no, × 2.0 | 900 MB |" in text
    assert "1 of 2 aims reached. Memory: aim < 1,500 MB, largest 900." in text


def test_every_row_has_a_name_of_its_own():
    labels = [row.label for row in asks.ROWS]
    assert len(set(labels)) == len(labels)


def test_jobs_take_turns_and_see_the_same_argument():
    seen = []
    jobs = {name: lambda x, name=name: seen.append((name, x)) for name in "ab"}
    timing.interleaved(jobs, lambda number: number, n_rounds=2, warm_up=lambda: -1)
    assert seen == [("a", -1), ("b", -1), ("a", 0), ("b", 0), ("b", 1), ("a", 1)]
