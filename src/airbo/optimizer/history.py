"""What was asked, and what came back, in order."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from jaxtyping import Float
from torch import Tensor

from airbo.cube import Cube
from airbo.optimizer.record import Design, Observation
from airbo.optimizer.search import near
from airbo.space import Space


@dataclass
class History:
    """The memory of an optimization: all that a model or a proposal is made from."""

    space: Space
    observations: list[Observation] = field(default_factory=list)
    pending: list[Design] = field(default_factory=list)
    """Designs that were asked for and not told yet."""
    n_asked: int = 0
    """How often a design was asked for."""

    def copy(self) -> "History":
        """Return a history that holds the same, and that can go its own way."""
        return replace(self, observations=[*self.observations], pending=[*self.pending])

    def ask(self, design: Design) -> None:
        """Remember a design that was proposed."""
        self.pending.append(design)
        self.n_asked += 1

    def tell(self, observation: Observation) -> None:
        """Remember an observation, asked for or not."""
        self.answer(observation.design)
        self.observations.append(observation)

    def answer(self, design: Design) -> bool:
        """Take a design off the pending ones, also where rounding has changed its last digits."""
        if design not in self.pending:
            rounded = near(self.unit(self.pending), self.unit([design])).nonzero()
            if not len(rounded):
                return False
            design = self.pending[int(rounded[0])]
        self.pending.remove(design)
        return True

    @property
    def known(self) -> list[Observation]:
        """Observations that have a value."""
        return [o for o in self.observations if not o.failed]

    @property
    def tried(self) -> list[Design]:
        """Distinct designs that have a value, inside the space; all if none is inside."""
        distinct: list[Design] = []
        for o in self.known:
            if o.design not in distinct:
                distinct.append(o.design)
        inside = self.unit(distinct).sub(0.5).abs().amax(-1) <= 0.5 + 1e-9
        return [d for d, is_in in zip(distinct, inside, strict=True) if is_in] or distinct

    @property
    def waiting(self) -> list[Design]:
        """Pending and failed designs: those whose value is not known."""
        return [*self.pending, *(o.design for o in self.observations if o.failed)]

    @property
    def recently_failed(self) -> list[Design]:
        """Failed designs, each until as many values have come in since as it has failed."""
        recent: list[Design] = []
        n_values = 0
        for o in reversed(self.observations):
            n_values += not o.failed
            if o.failed and o.design not in recent and n_values < self._n_failures(o.design):
                recent.append(o.design)
        return recent

    def _n_failures(self, design: Design) -> int:
        return sum(o.failed and o.design == design for o in self.observations)

    def unit(self, designs: Sequence[Design]) -> Float[Tensor, "n {self.space.d}"]:
        """Write designs as points of the unit cube."""
        return Cube(self.space).axes.from_columns(
            Cube(self.space).columns(designs, allow_outside=True)
        )
