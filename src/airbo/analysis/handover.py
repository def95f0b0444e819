"""What people hand over where there are limits: operating window and tolerance budgets."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from airbo.analysis.budget import ToleranceBudget, tolerance_budget
from airbo.analysis.window import OperatingWindow, operating_window
from airbo.measures import InSpec
from airbo.optimizer import Optimizer
from airbo.outcomes import limits

LEVEL_OF_WINDOW = 0.95
"""The probability of being in spec that a window is about, if nobody asked for one."""


@dataclass(frozen=True)
class Handover:
    """The window around a design, and a budget for each value that has limits."""

    window: OperatingWindow | None
    budgets: tuple[ToleranceBudget, ...]

    @classmethod
    def of(
        cls, optimizer: Optimizer, design: Mapping[str, Any], given: Mapping[str, Any] | None = None
    ) -> "Handover":
        """Look at a design; without limits there is nothing to hand over.

        Args:
            optimizer: It is not changed.
            design: The design in use.
            given: What you know of its use, by name; as for ``Optimizer.recommend``.
        """
        # the window of all limits together at the strictest probability; a budget for each
        wanted = limits(optimizer.outcomes)
        if wanted:
            level = min(limit.probability for limit in wanted.values())
            budgets = [tolerance_budget(optimizer, design, name, given=given) for name in wanted]
        elif isinstance(optimizer.measure, InSpec) and len(optimizer.outcomes) < 2:
            level, budgets = LEVEL_OF_WINDOW, [tolerance_budget(optimizer, design, given=given)]
        else:
            return cls(None, ())
        return cls(operating_window(optimizer, level, design, given=given), tuple(budgets))

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and strings, for JSON; nothing where there are no limits."""
        if self.window is None:
            return {}
        window = asdict(self.window)
        del window["along"]  # hundreds of numbers, for a picture
        return {
            "operating_window": window,
            "tolerance_budgets": [asdict(budget) for budget in self.budgets],
        }
