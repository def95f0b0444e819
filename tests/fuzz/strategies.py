"""Campaign files, tables, states, command lines, trials: nearly right, and quite wrong ones."""

import json
from datetime import datetime

import optuna
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState

from airbo.integrations.optuna import EXECUTED, GAVE_UP, OUTCOMES, UNCERTAINTY

EXTREMES = [
    0, 1, -1, 2**53, 2**63, -(2**63), 0.0, -0.0, 1e-300, 1e-320, 1.7e308, -1.7e308, 1e100, 1e-100,
    float("nan"), float("inf"), -float("inf"), True, False, "", "x", " ", "nan", [], {}, None,
]  # fmt: skip
NAMES = ["x", "speed", "", " ", "value", "7", "a=b", "executed_x", "ø", "x.y", '"', "\n", "trial"]

extremes = st.sampled_from(EXTREMES)
usual = st.one_of(st.floats(-10, 10), st.integers(-10, 10))
numbers = st.one_of(usual, usual, extremes, st.floats(), st.integers())
texts = st.one_of(st.sampled_from(NAMES), st.text(max_size=8))


def toml(value):
    """Write a value as TOML; None is what TOML does not have."""
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    if isinstance(value, dict):
        inner = ", ".join(f"{json.dumps(k)} = {toml(v)}" for k, v in value.items())
        return f"{{ {inner} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml, value))}]"
    return repr(value) if isinstance(value, int | float) else json.dumps(value)


KINDS = ["normal", "uniform", "beta", "chi-squared", "exact", "ring", "gaussian-mixture",
         "empirical", "piecewise", "scipy", "nothing"]  # fmt: skip
FIELDS = ["std", "cov", "low", "high", "a", "b", "df", "loc", "scale", "radius", "deviations",
          "edges", "pieces", "name", "clip_low", "clip_high", "means", "covs"]  # fmt: skip


@st.composite
def uncertainties(draw):
    """Tables about an uncertainty, most of them right."""
    if draw(st.booleans()):
        return {"kind": "normal", "std": draw(numbers)}
    fields = draw(st.dictionaries(st.sampled_from(FIELDS), numbers, max_size=3))
    return {"kind": draw(st.sampled_from(KINDS)), **fields}


@st.composite
def parameters(draw):
    """Tables about a parameter, most of them right."""
    if draw(st.integers(0, 3)) == 0:
        return {"choices": draw(st.lists(st.one_of(texts, numbers), max_size=3))}
    low, high = draw(st.one_of(st.just((0.0, 1.0)), st.just((1, 5)), st.tuples(numbers, numbers)))
    table = {"low": low, "high": high}
    table |= draw(st.sampled_from([{}, {}, {"log": True}, {"type": "integer"}, {"unit": "mm"}]))
    if draw(st.integers(0, 5)) == 0:
        table["step"] = draw(numbers)
    if draw(st.booleans()):
        table["uncertainty"] = draw(uncertainties())
    return table


@st.composite
def campaign_files(draw):
    """Texts of campaign files."""
    names = st.sampled_from([*["x", "speed", "depth"] * 3, *NAMES])
    tables = draw(st.dictionaries(names, parameters(), min_size=1, max_size=3))
    top = {"name": "a", "n_initial": 2, "surrogate": "nominal"}
    others = ["seed", "n_initial", "direction", "value", "deployment", "odd"]
    top |= draw(st.dictionaries(st.sampled_from(others), numbers, max_size=1))
    lines = [f"{key} = {toml(value)}" for key, value in top.items()]
    for name, table in tables.items():
        lines.append(f"[parameters.{json.dumps(name)}]")
        lines += [f"{key} = {toml(value)}" for key, value in table.items()]
    return draw(mutated("\n".join(lines) + "\n"))


@st.composite
def mutated(draw, text):
    """The text itself, or with some characters taken away, doubled or put in."""
    for _ in range(draw(st.sampled_from([0, 0, 0, 0, 1, 2]))):
        i = draw(st.integers(0, max(0, len(text) - 1)))
        j = i + draw(st.integers(0, 12))
        new = draw(st.one_of(st.just(""), st.just(text[i:j] * 2), st.text(max_size=3)))
        text = text[:i] + new + text[j:]
    return text


cells = st.one_of(st.sampled_from(["0.5", "1", "-1e300", "nan", "inf", "", "²", "0,5", "ok"]),
                  st.text(max_size=5))  # fmt: skip
columns = st.sampled_from(["x", "value", "status", "executed_x", "trial", "", "X", "told"])


@st.composite
def tables(draw):
    """Texts of CSV files."""
    header = draw(st.one_of(st.just(["x", "value"]), st.lists(columns, max_size=4)))
    right = st.tuples(st.sampled_from(["0.5", "0.25"]), st.sampled_from(["1", "-2.5"]))
    rows = draw(st.lists(st.one_of(right, st.lists(cells, max_size=4)), max_size=4))
    separator = draw(st.sampled_from([",", ",", ";"]))
    return draw(mutated("\n".join(separator.join(row) for row in [header, *rows])))


words = st.one_of(
    st.sampled_from(["0", "1", "0=1.5", "x=0.5", "1.5", "-2", "-inf", "nan", "²", "-f", "--json",
                     "--correct", "--executed", "x=9e999", "--uncertainty", "x = {", "-n", "--",
                     "=", "", "--allow-outside", "x=-1e300", "99999999999999999999"]),
    st.text(max_size=6),
)  # fmt: skip
COMMANDS = ["tell", "tell", "fail", "status", "export", "import", "check", "init", "restore", "ask"]
command_lines = st.tuples(st.sampled_from(COMMANDS), st.lists(words, max_size=4))


# -- trials that somebody else has written

KINDS_OF_X = [
    FloatDistribution(0.0, 1.0), FloatDistribution(0.0, 1.0), FloatDistribution(0.0, 1.0),
    FloatDistribution(0.0, 2.0), FloatDistribution(1e-3, 1.0, log=True),
    FloatDistribution(0.0, 1.0, step=0.25), FloatDistribution(0.5, 0.5), IntDistribution(0, 5),
    CategoricalDistribution([0.5, 0.25]), CategoricalDistribution(["A", None, True]),
]  # fmt: skip
ATTRIBUTES = [EXECUTED, UNCERTAINTY, OUTCOMES, GAVE_UP, "note"]
by_name = st.dictionaries(st.sampled_from(["x", "x", "z", "value"]), numbers, max_size=2)
described = st.lists(
    st.fixed_dictionaries({"parameters": st.just(["x"]), "uncertainty": uncertainties()}),
    max_size=1,
)
odd = st.one_of(by_name, described, extremes, st.lists(extremes, max_size=2))


@st.composite
def foreign_trials(draw):
    """Finished and unfinished trials, most of them ordinary, with attributes of all kinds."""
    kinds = {"x": draw(st.sampled_from(KINDS_OF_X))}
    if draw(st.integers(0, 3)) == 0:
        kinds["z"] = FloatDistribution(0.0, 1.0)
    if draw(st.integers(0, 5)) == 0:
        del kinds["x"]
    state = draw(st.sampled_from([TrialState.COMPLETE] * 3 + list(TrialState)))
    begun = None if state == TrialState.WAITING else datetime(2026, 1, 2)
    return optuna.trial.FrozenTrial(
        number=-1,
        trial_id=-1,
        state=state,
        value=draw(st.one_of(usual, extremes.filter(_is_number))),
        values=None,
        datetime_start=begun,
        datetime_complete=datetime(2026, 1, 3) if state.is_finished() else None,
        params={name: _inside(draw, kind) for name, kind in kinds.items()},
        distributions=kinds,
        user_attrs=draw(st.dictionaries(st.sampled_from(ATTRIBUTES), odd, max_size=1)),
        system_attrs=draw(st.sampled_from([{}, {"fixed_params": draw(by_name)}])),
        intermediate_values=draw(st.dictionaries(st.integers(0, 2), usual, max_size=1)),
    )


def _is_number(value):
    return isinstance(value, float) and value == value


def _inside(draw, kind):
    if isinstance(kind, CategoricalDistribution):
        return draw(st.sampled_from(kind.choices))
    if isinstance(kind, IntDistribution):
        return draw(st.integers(kind.low, kind.high))
    if kind.step is not None:
        return kind.step * draw(st.integers(0, 4))
    return draw(st.floats(kind.low, kind.high))


studies = st.lists(foreign_trials(), min_size=1, max_size=4)
