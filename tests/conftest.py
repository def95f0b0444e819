import jaxtyping
import pytest
import torch
from hypothesis import settings

# The same examples in every run, and no deadline: the first call of a torch function is slow.
settings.register_profile("airbo", derandomize=True, deadline=None)
settings.load_profile("airbo")

torch.set_num_threads(1)


@pytest.fixture
def as_without_shape_checks():
    """Run as users do, so that our own messages appear and not those of the test run."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
