"""The values of a design over where it lands, as the model predicts them."""

from jaxtyping import Float
from torch import Tensor

from airbo.optimizer.optimizer import Optimizer
from airbo.space import Design


def values_in_use(
    optimizer: Optimizer, design: Design, outcome: str | None = None
) -> Float[Tensor, "S s"]:
    """Return draws of the values at executed inputs; capabilities come from the same ones.

    Args:
        optimizer: It is not changed.
        design: The design in use.
        outcome: Which outcome is meant, where there are several; by default the first objective.
    """
    with optimizer._lock:
        if optimizer._goals is None:
            return optimizer._predictor().values(design)
        return optimizer._goal(outcome).predictor(optimizer._history).values(design)
