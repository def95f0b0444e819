"""Hypothesis strategies for spaces and their designs."""

from hypothesis import strategies as st

from airbo import Categorical, Float, Integer, Space
from tests.strategies import quietly

floats = st.floats(-1e3, 1e3)
positive = st.floats(1e-6, 1e3)


@st.composite
def float_parameters(draw):
    log = draw(st.booleans())
    low = draw(positive if log else floats)
    return Float(low, low + draw(st.floats(1e-2, 1e3)), log=log)


@st.composite
def grid_parameters(draw):
    low, step = (draw(st.integers(1, 99)) / scale for scale in (10, 100))
    return Float(low, low + draw(st.integers(1, 30)) * step, step=step)


@st.composite
def integer_parameters(draw):
    log = draw(st.booleans())
    low = draw(st.integers(1 if log else -50, 50))
    step = 1 if log else draw(st.integers(1, 3))
    return Integer(low, low + step * draw(st.integers(1, 30)), log=log, step=step)


def categorical_parameters():
    choices = st.lists(st.text(max_size=5), min_size=2, max_size=5, unique=True)
    return choices.map(Categorical)


@st.composite
def spaces(draw):
    kinds = st.one_of(
        float_parameters(), grid_parameters(), integer_parameters(), categorical_parameters()
    )
    parameters = draw(st.lists(kinds, min_size=1, max_size=4))
    return quietly(Space)({f"p{i}": parameter for i, parameter in enumerate(parameters)})


def values(parameter):
    """Values that the parameter accepts."""
    if isinstance(parameter, Categorical):
        return st.sampled_from(parameter.choices)
    if isinstance(parameter, Integer):
        return st.integers(parameter.low, parameter.high)
    if parameter.step is not None:
        grid = (parameter.low + k * parameter.step for k in range(parameter.n_values))
        return st.sampled_from([parameter.decode(number) for number in grid])
    return st.floats(parameter.low, parameter.high)


def designs(space):
    return st.fixed_dictionaries({name: values(p) for name, p in space.parameters.items()})


@st.composite
def spaces_with_designs(draw):
    space = draw(spaces())
    return space, draw(st.lists(designs(space), max_size=4))
