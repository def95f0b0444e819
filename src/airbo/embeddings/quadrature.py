"""The fastest embedding that suits the uncertainties."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from airbo.embeddings.embedding import Embedding
from airbo.embeddings.grid import GridEmbedding, suits_grid
from airbo.embeddings.mixtures import ComponentEmbedding
from airbo.embeddings.shifts import ShiftEmbedding, suits_shifts
from airbo.uncertainty import InputUncertainty

FINER = 3
"""Resolution on a line, as a multiple of that in several columns."""


class QuadratureEmbedding(Embedding):
    """Embeds by differences of designs as long as all uncertainties are additive.

    Where one is not, P_x is spread over a grid on a line, and compared component by
    component in several columns.
    """

    def __init__(self, n_atoms: int, *args: object) -> None:
        """Resolve what is not Gaussian with ``n_atoms`` components."""
        super().__init__(*args)  # type: ignore[arg-type]
        self.n_atoms = n_atoms
        self._by_shift: Embedding | None = None
        self._by_components: Embedding | None = None
        if suits_shifts(self.uncertainties, self.base_kernel):
            self._by_shift = ShiftEmbedding(n_atoms, *args)
        else:
            self._by_components = self._for_any_uncertainty()

    @property
    def depends_on_hyperparameters(self) -> bool:  # type: ignore[override]
        """Whether the features change while a model is fitted."""
        return self._way.depends_on_hyperparameters

    @property
    def version(self) -> int:
        """Grows whenever features made before can no longer be compared with new ones."""
        return self._changes + self._way.version

    def number_of(self, uncertainty: InputUncertainty) -> int:
        """Return the number of an uncertainty, taking it into the list if it is new."""
        number = super().number_of(uncertainty)
        for way in (self._by_shift, self._by_components):
            if way is not None:
                way.number_of(uncertainty)
        if self._by_components is None and not all(u.is_additive for u in self.uncertainties):
            self._by_components = self._for_any_uncertainty()
        return number

    def compute(
        self, X: Float[Tensor, "*batch n d"], choice: Int64[Tensor, "*batch n"]
    ) -> Float[Tensor, "*batch n f"]:
        """Return the features of the embedding in use."""
        return self._way.compute(X, choice)

    def inner(
        self,
        f1: Float[Tensor, "*#batch n f"],
        f2: Float[Tensor, "*#batch q f"],
        diag: bool = False,
    ) -> Float[Tensor, "..."]:
        r"""Return :math:`\langle\psi_P, \psi_Q\rangle` for all pairs, or matching ones."""
        return self._way_of(f1).inner(f1, f2, diag)

    def squared_norm(self, f: Float[Tensor, "*batch n f"]) -> Float[Tensor, "*batch n"]:
        r"""Return :math:`\|\psi_P\|^2`."""
        return self._way_of(f).squared_norm(f)

    @property
    def _way(self) -> Embedding:
        way = self._by_components or self._by_shift
        assert way is not None
        return way

    def _way_of(self, f: Tensor) -> Embedding:
        """Return the embedding that made features, also before the way was changed."""
        if self._by_shift is not None and f.shape[-1] == self.d + 1:
            return self._by_shift
        return self._way

    def _for_any_uncertainty(self) -> Embedding:
        bounds = torch.stack([self.low, self.low + self.width])
        args = (self.uncertainties, self.base_kernel, bounds)
        if any(suits_grid(u, bounds, self.n_atoms) for u in self.uncertainties):
            return GridEmbedding(FINER * self.n_atoms, *args)
        return ComponentEmbedding(self.n_atoms, *args)
