"""The campaign file: what it means, and every mistake with its line."""

import tomllib
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import airbo
from airbo import uncertainty as unc
from airbo.integrations.optuna import read_uncertainty
from airbo.lab import FileError, Settings, StorageError
from airbo.lab.file import parse_uncertainty
from airbo.lab.toml_errors import Notes
from airbo.measures import InSpec
from airbo.uncertainty.kinds import WORDS
from tests.lab.common import LINE, MILL, edited, line_of, settings, write


def mistakes(text):
    with pytest.raises(FileError) as caught:
        settings(text).check()
    return [(m.line, m.text) for m in caught.value.mistakes]


def test_values_may_have_a_plausible_range():
    whole = LINE.replace("n_initial", 'value = { name = "yield", low = 0, high = 100 }\nn_initial')
    assert settings(whole).plausible == {"yield": (0, 100)}
    half = LINE + '[outcomes.yield]\ngoal = "maximize"\nhigh = 100\n'
    assert settings(half).plausible == {"yield": (None, 100)}
    assert settings(LINE).plausible == {"value": (None, None)}


def test_a_file_says_what_it_says():
    s = settings(MILL)
    assert (s.name, s.direction, s.value_name, s.value_unit) == (
        "milling", "minimize", "roughness", "µm",
    )  # fmt: skip
    assert s.space == airbo.Space(
        {
            "speed": airbo.Float(50, 200, unit="m/min"),
            "depth": airbo.Float(0.1, 2, log=True),
            "passes": airbo.Integer(1, 5),
            "tool": ["A", "B"],
        }
    )
    assert s.uncertainty == {"speed": unc.Normal(2.0)}
    assert s.deployment is None
    assert (s.surrogate, s.acquisition, s.seed, s.n_initial) == ("nominal", "default", 3, 4)
    assert (s.unit("speed"), s.unit("tool")) == ("m/min", "")


def test_a_file_can_name_a_measure():
    text = LINE.replace('surrogate = "nominal"', 'measure = "in-spec:..0.2"\nnoise = "product"')
    read = settings(text)
    read.check()
    assert (read.measure, read.noise) == (InSpec(high=0.2), "product")


def test_what_is_left_out_is_as_for_the_optimizer():
    s = settings('name = "a"\n[parameters.x]\nlow = 0\nhigh = 1\n')
    optimizer = airbo.Optimizer(s.space)
    assert s.n_initial == optimizer.n_initial
    assert (s.direction, s.surrogate, s.seed) == ("maximize", "default", 0)
    assert s.acquisition == optimizer.acquisition
    assert s.uncertainty == {}
    assert str(s.storage) == "sqlite:///campaign.db"


INLINE = {
    "exact": ("", unc.Exact()),
    "normal": ("std = 0.1", unc.Normal(0.1)),
    "uniform": ("low = -0.1, high = 0.2", unc.Uniform(-0.1, 0.2)),
    "beta": ("a = 0.4, b = 0.2, scale = 0.1", unc.Beta(0.4, 0.2, scale=0.1)),
    "chi-squared": ("df = 2, scale = 0.01", unc.ChiSquared(2, scale=0.01)),
    "gaussian-mixture": (
        "means = [[0.0], [0.1]], covs = [[0.01]], weights = [0.3, 0.7]",
        unc.GaussianMixture([[0.0], [0.1]], [[0.01]], [0.3, 0.7]),
    ),
    "empirical": ("deviations = [0.1, -0.1, 0.0]", unc.Empirical([0.1, -0.1, 0.0])),
    "piecewise": (
        'edges = [0.5], pieces = [{ kind = "exact" }, { kind = "normal", std = 0.1 }]',
        unc.Piecewise([0.5], [unc.Exact(), unc.Normal(0.1)]),
    ),
    "relative": (
        'share = { kind = "uniform", low = -0.1, high = 0.2 }',
        unc.Relative(unc.Uniform(-0.1, 0.2)),
    ),
    "lognormal": ("sigma = 0.1", unc.LogNormal(0.1)),
}  # fmt: skip


@pytest.mark.parametrize("kind", INLINE)
def test_every_kind_can_be_written_for_one_parameter(kind):
    numbers, expected = INLINE[kind]
    inline = ", ".join(filter(None, [f'kind = "{kind}"', numbers]))
    s = settings(edited(LINE, 'kind = "normal", std = 0.05', inline))
    assert s.uncertainty == {"x": expected}


def test_scipy_and_clipping_can_be_written():
    inline = (
        'kind = "scipy", name = "norm", kwds = { scale = 0.1 }, clip_low = 0.0, clip_high = 1.0'
    )
    [made] = settings(edited(LINE, 'kind = "normal", std = 0.05', inline)).uncertainty.values()
    assert isinstance(made, unc.Clipped)
    assert (made.low, made.high) == (0.0, 1.0)
    X = torch.tensor([[0.0]], dtype=torch.float64)
    assert made.perturb(X, unc.base_draws(64, 1)).min() == 0.0


def test_a_ring_and_others_act_on_groups():
    group = """
[parameters.y]
low = 0
high = 1
[[deployment]]
parameters = ["y", "x"]
kind = "ring"
radius = 0.1
[[deployment]]
parameters = ["z"]
kind = "piecewise"
edges = [0.5]
by = "z"
pieces = [
  { kind = "exact" },
  { kind = "uniform", low = 0, high = 1 },
]
[parameters.z]
low = 0
high = 1
[parameters.v]
low = 0
high = 1
[parameters.w]
low = 0
high = 1
[[deployment]]
parameters = ["v", "w"]
kind = "joint"
marginals = [{ kind = "beta", a = 2, b = 5 }, { kind = "normal", std = 0.1 }]
correlation = [[1.0, 0.5], [0.5, 1.0]]
"""
    s = settings(LINE + group)
    assert s.uncertainty == {"x": unc.Normal(0.05)}
    assert s.deployment == {
        ("y", "x"): unc.Ring(0.1),
        "z": unc.Piecewise([0.5], [unc.Exact(), unc.Uniform(0, 1)]),
        ("v", "w"): unc.Joint([unc.Beta(2, 5), unc.Normal(0.1)], [[1, 0.5], [0.5, 1]]),
    }
    assert set(INLINE) | {"scipy", "ring", "joint", "relative", "lognormal"} == set(WORDS)


def test_use_can_be_exact_where_experiments_are_not():
    assert settings('deployment = "exact"\n' + LINE).deployment == {}


def test_logged_deviations_come_from_a_file_beside(tmp_path):
    (tmp_path / "log.csv").write_text("x,other\n0.1,5\n-0.1,6\n")
    text = edited(LINE, 'kind = "normal", std = 0.05', 'kind = "empirical", file = "log.csv"')
    assert Settings.read(write(tmp_path, text)).uncertainty == {"x": unc.Empirical([0.1, -0.1])}


def test_logged_deviations_that_are_missing_or_broken_are_named(tmp_path):
    text = edited(LINE, 'kind = "normal", std = 0.05', 'kind = "empirical", file = "log.csv"')
    with pytest.raises(FileError, match=r"line 9: .*no file 'log.csv' beside the campaign file"):
        Settings.read(write(tmp_path, text))
    (tmp_path / "log.csv").write_text("x\n0.1\nfast\n")
    with pytest.raises(FileError, match=r"line 9: .*row 3.*expected a finite number, got 'fast'"):
        Settings.read(write(tmp_path, text))


CHOICES, LOG = line_of(MILL, "choices"), line_of(MILL, "log =")
WRONG = [
    (LINE, 'name = "line"', "", 1, "name is missing"),
    (LINE, 'name = "line"', "name = 3", 1, "name must be a text in quotes, got 3"),
    (LINE, "n_initial = 1000", "n_intial = 1000", 3, "unknown key 'n_intial'; did you mean 'n_ini"),
    (LINE, "n_initial = 1000", "n_initial = 0", 3, "n_initial must be >= 1, got 0"),
    (LINE, "n_initial = 1000", "n_initial = true", 3, "must be a whole number, got True"),
    (LINE, "n_initial = 1000", "seed = 1.5", 3, "seed must be a whole number, got 1.5"),
    (LINE, "n_initial = 1000", "seed = -1", 3, "seed must be >= 0, got -1"),
    (LINE, "n_initial = 1000", 'direction = "up"', 3, "must be one of 'maximize', 'minimize', got"),
    (LINE, '"nominal"', '"gp"', 2, "surrogate must be one of 'default', 'expectation'"),
    (LINE, "n_initial = 1000", 'acquisition = "pi"', 3, "acquisition must be one of 'default'"),
    (LINE, "n_initial = 1000", 'measure = "median"', 3, "measure: There is no measure 'median'"),
    (LINE, "n_initial = 1000", 'measure = "cvar:90"', 3, "level must be a number between 0 and 1"),
    (LINE, "n_initial = 1000", 'measure = "cvar:0.9999"', 3, "level must not exceed 0.999"),
    (LINE, "n_initial = 1000", 'measure = "cvar:0.9"', 3, "NominalGP has no model of f itself"),
    (LINE, "n_initial = 1000", 'noise = "both"', 3, "noise must be one of 'measurement'"),
    (LINE, "n_initial = 1000", "value = { low = 5, high = 5 }", 3, "low must be below high, got 5"),
    (LINE, "n_initial = 1000", 'value = { low = "0" }', 3, "low must be a number, got '0'"),
    (LINE, "low = 0.0", "", 5, "parameters.x: low is missing"),
    (LINE, "low = 0.0", "low = 2.0", 6, "low must be < high"),
    (LINE, "low = 0.0", "low = inf", 6, "low must be finite"),
    (LINE, "low = 0.0", 'low = "0"', 6, "low must be a number, got '0'"),
    (LINE, "low = 0.0", "lo = 0.0", 6, "unknown key 'lo'; did you mean 'low'"),
    (LINE, "std = 0.05", "std = -1", 9, "std must be >= 0, got -1"),
    (LINE, "std = 0.05", "sd = 1", 9, "unknown key 'sd'; did you mean 'std'"),
    (LINE, ", std = 0.05", "", 9, "exactly one of std and cov, got neither"),
    (LINE, '"normal"', '"gauss"', 9, "unknown kind 'gauss'"),
    (LINE, 'kind = "normal", ', "", 9, "kind is missing"),
    (LINE, 'kind = "normal", std = 0.05', 'kind = "uniform", low = 1', 9, "high is missing"),
    (LINE, 'kind = "normal", std = 0.05', 'kind = "ring", radius = 1', 9, "does not fit"),
    (LINE, 'kind = "normal", std = 0.05', 'kind = "normal", std = [1, 2]', 9, "does not fit"),
    (LINE, "{ kind", '"large" # { kind', 9, "uncertainty must be a table, got 'large'"),
    (LINE, "[parameters.x]", "[parameters.value]", 5, "cannot be called 'value'"),
    (LINE, "[parameters.x]", '[parameters."a=b"]', 5, "cannot be called 'a=b'"),
    (MILL, 'choices = ["A", "B"]', 'choices = ["A"]', CHOICES, "At least two choices"),
    (MILL, "passes]\n", "passes]\nstep = 9\n", line_of(MILL, "high = 5") + 1, "steps"),
    (MILL, "log = true", 'log = true\nuncertainty = {kind = "normal", std = 1}', LOG + 1, "clip"),
    (MILL, 'B"]', 'B"]\nuncertainty = {kind = "exact"}\n[[uncertainty]]', CHOICES + 2, "missing"),
    (MILL, 'B"]', 'B"]\nuncertainty = {kind = "normal", std = 1}', CHOICES + 1, "categor"),
    (LINE, "0.05 }", '0.05 }\n[[uncertainty]]\nparameters = ["X"]\nkind = "exact"', 11, "did you"),
    (LINE, "0.05 }", '0.05 }\n[[uncertainty]]\nparameters = ["x"]\nkind = "exact"', 10, "more th"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "old", "new", "line", "message"), WRONG)
def test_a_mistake_is_named_with_its_line(text, old, new, line, message):
    found = mistakes(edited(text, old, new))
    assert [n for n, said in found if message in said] == [line], found


def test_all_mistakes_are_named_at_once():
    text = edited(edited(edited(MILL, "std =", "sd ="), "high = 5", "high = 0"), "seed", "sead")
    found = mistakes(text)
    assert [line for line, _ in found] == [
        line_of(text, "sead"), line_of(text, "sd ="), line_of(text, "low = 1$"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "line"),
    [("name = ", 1), ("a = 1\nb = [1,\n", 2), ("a = 1\na = 2\n", 2), ("a = 1\n[x\n", 2), ("=", 1)],
)
def test_broken_toml_is_named_with_its_line(text, line):
    [(found, said)] = mistakes(text)
    assert found == line
    assert "not valid TOML" in said


@pytest.mark.parametrize(
    "text", ["", 'name = "a"', 'name = "a"\nparameters = 3', "parameters = {}"]
)
def test_a_file_without_parameters_is_refused(text):
    assert any("parameters" in said for _, said in mistakes(text))


def test_files_that_cannot_be_read_are_named(tmp_path):
    with pytest.raises(StorageError, match=r"There is no campaign file.*airbo init"):
        Settings.read(tmp_path / "none.toml")
    (tmp_path / "image.toml").write_bytes(b"\x89PNG\xff")
    with pytest.raises(FileError, match="not a text file"):
        Settings.read(tmp_path / "image.toml")
    with pytest.raises(StorageError, match="cannot be read: Is a directory"):
        Settings.read(tmp_path)


def test_the_environment_names_another_storage(monkeypatch):
    monkeypatch.setenv("AIRBO_STORAGE", "sqlite:///other.db")
    assert str(settings(LINE).storage) == "sqlite:///other.db"


def test_the_uncertainty_of_one_experiment_is_written_in_the_same_way():
    s = settings(MILL)
    described = parse_uncertainty('speed = {kind = "uniform", low = 0, high = 1}', s)
    assert read_uncertainty(described) == {("speed",): unc.Uniform(0, 1)}
    assert parse_uncertainty("", s) == []
    with pytest.raises(FileError, match="unknown key 'sped'; did you mean 'speed'"):
        parse_uncertainty('sped = {kind = "exact"}', s)
    with pytest.raises(FileError, match="not valid TOML"):
        parse_uncertainty("speed", s)


KEYS = st.from_regex(r"[a-z_-]{1,6}", fullmatch=True)
VALUES = st.sampled_from(
    ["1", '"a # [b]"', "'''a\nb = 1\n[c]\n'''", '"""\n\\"""x\n"""', "[1,\n # [\n 2]", "{ z = [1] }"]
)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["[{}]", "[[{}]]", '["{}"] # [x]']),
            KEYS,
            st.dictionaries(KEYS, VALUES, max_size=3),
        ),
        max_size=5,
        unique_by=lambda table: table[1],
    )
)
def test_lines_of_keys_are_those_where_they_stand(tables):
    text, expected = "", {}
    for header, name, keys in tables:
        path = (name, 0) if header.startswith("[[") else (name,)
        expected[path] = text.count("\n") + 1
        text += header.format(name) + "\n"
        for key, value in keys.items():
            text += "\n"
            expected[(*path, key)] = text.count("\n") + 1
            text += f"{key} = {value}  # c = 1\n"
    tomllib.loads(text)
    lines = Notes(text)
    assert {path: lines.line(*path) for path in expected} == expected
    assert lines.line("nowhere") == 1


def test_a_settings_object_knows_its_place():
    assert settings(LINE).path == Path("campaign.toml")


def test_other_mistakes_are_named_where_the_name_is_missing():
    text = edited(
        edited(LINE, 'name = "line"', 'nme = "line"'), "n_initial = 1000", "n_initial = 0"
    )
    said = " ".join(what for _, what in mistakes(text))
    assert all(part in said for part in ("'nme'", "name is missing", "n_initial must be >= 1"))


def test_exact_use_and_another_use_of_a_parameter_contradict_each_other():
    text = f'deployment = "exact"\n{LINE}deployment = {{ kind = "normal", std = 0.02 }}\n'
    [(line, said)] = mistakes(text)
    assert line == len(text.splitlines())
    assert "remove one of the two" in said


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name = " + "[" * 5000 + "]" * 5000, "nested too deeply"),
        ("a" + ".a" * 5000 + " = 1", "nested too deeply"),
        ("a = " + "{a = " * 50 + "1" + "}" * 50, "nested too deeply"),
        ("seed = " + "9" * 5001, "too many digits"),
        ('storage = "sqlite:///a\\u0000b.db"', "has a character that none can"),
        (f'storage = "sqlite:///{"a" * 5000}.db"', "is longer than 255 bytes"),
    ],
    ids=["lists", "dots", "tables", "digits", "NUL", "a long name"],
)
def test_files_made_to_break_whoever_reads_them_are_refused(text, message):
    with pytest.raises(FileError, match=message):
        settings(text + "\n" + LINE.replace('storage = "sqlite:///campaign.db"\n', ""))
