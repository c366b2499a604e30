"""Eigenvalues of a large symmetric operator that is known by its products with vectors alone.

Every new vector is made orthogonal to all before it, twice: so no eigenvalue comes up again as a
copy of itself, and the residual that the recurrence implies is the true one, to rounding. Vectors
have the precision of the operator; the projected operator, which is small, is of double precision.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Apply = Callable[[Tensor], Tensor]
Array = npt.NDArray[np.float64]

# Vectors in memory, however many steps it takes: when there are that many, those that span the best
# approximations stay.
LARGEST_BASIS = 64

# An image has nothing new if this is left of it without the basis, in units of rounding.
ROUNDING = 20


@dataclass(frozen=True)
class Start:
    """Where a process starts: at a vector of random signs, the same one on every device."""

    size: int
    seed: tuple[int, ...]
    like: Tensor

    def chance(self) -> np.random.Generator:
        """Return the generator of all vectors of a process."""
        return np.random.default_rng(self.seed)

    def signs(self, chance: np.random.Generator) -> Tensor:
        """Return a vector of random signs."""
        return torch.from_numpy(2.0 * chance.integers(0, 2, self.size) - 1).to(self.like)

    def noise(self, chance: np.random.Generator) -> Tensor:
        """Return a vector of normal values."""
        return torch.from_numpy(chance.standard_normal(self.size)).to(self.like)


class _Krylov:
    """An orthonormal basis that grows by one vector per step, and the operator projected on it."""

    def __init__(self, apply: Apply, start: Start, capacity: int) -> None:
        self._apply, self._start, self._chance = apply, start, start.chance()
        self.capacity = min(capacity, start.size)
        self._basis = start.like.new_empty(self.capacity + 1, start.size)
        self._projected = np.zeros((self.capacity, self.capacity))
        self._rounding = ROUNDING * torch.finfo(start.like.dtype).eps
        self.length = self.steps = 0
        self.coupling = 0.0
        first = start.signs(self._chance)
        self._basis[0] = first / torch.linalg.vector_norm(first)

    @property
    def closed(self) -> bool:
        """Tell whether the space of the basis is the operator's own: its eigenvalues are exact."""
        return self.coupling == 0

    @property
    def full(self) -> bool:
        """Tell whether there is no room for another vector."""
        return self.length == self.capacity

    @property
    def complete(self) -> bool:
        """Tell whether the basis is one of the whole space."""
        return self.length == self._start.size

    def _orthogonalize(self, vector: Tensor) -> tuple[Array, float]:
        """Take from a vector what it has of the basis; return that, and the norm of the rest."""
        basis = self._basis[: self.length]
        had = torch.zeros_like(basis[:, 0])
        for _ in range(2):
            share = basis @ vector
            vector -= share @ basis
            had += share
        return had.double().cpu().numpy(), float(torch.linalg.vector_norm(vector))

    def step(self) -> None:
        """Apply the operator to the last vector, and take what is new in its image as the next."""
        image = self._apply(self._basis[self.length])
        smallest = self._rounding * float(torch.linalg.vector_norm(image))
        self.length += 1
        self.steps += 1
        column, left = self._orthogonalize(image)
        self._projected[: self.length, self.length - 1] = column
        self._projected[self.length - 1, : self.length] = column
        self.coupling = 0.0 if self.complete or left <= smallest else left
        if self.complete:
            return
        if self.closed:
            image = self._start.noise(self._chance)
            _, left = self._orthogonalize(image)
        self._basis[self.length] = image / left

    def ritz(self) -> tuple[Array, Array, Array]:
        """Return approximate eigenvalues, ascending, their coordinates, and their residuals."""
        values, coordinates = np.linalg.eigh(self._projected[: self.length, : self.length])
        return values, coordinates, self.coupling * np.abs(coordinates[-1])

    def keep(self, values: Array, coordinates: Array) -> None:
        """Go on from some of the approximations alone, and from the vector that comes next."""
        count = len(values)
        turn = torch.from_numpy(np.ascontiguousarray(coordinates.T)).to(self._basis)
        self._basis[:count] = turn @ self._basis[: self.length]
        self._basis[count] = self._basis[self.length]
        self._projected[:count, :count] = np.diag(values)
        self.length = count


@dataclass(frozen=True)
class Spectrum:
    """The eigenvalues of the largest magnitude, the largest first, and how good they are.

    A residual is |Av - av| of a unit vector v, over the largest magnitude.
    """

    eigenvalues: Array
    residuals: Array
    steps: int


def largest(apply: Apply, start: Start, count: int, tolerance: float, most_steps: int) -> Spectrum:
    """Return the `count` eigenvalues of the largest magnitude, by thick-restart Lanczos.

    It ends when all residuals are within the tolerance, or else after `most_steps` products, or
    `count` if that is more. Of eigenvalues that are exactly equal, it may find one alone.
    """
    count = min(count, start.size)
    krylov = _Krylov(apply, start, max(LARGEST_BASIS, 3 * count))
    for _ in range(max(most_steps, count)):
        krylov.step()
        if krylov.length < count:
            continue
        values, coordinates, residuals = krylov.ritz()
        order = np.argsort(-np.abs(values), kind="stable")
        best = order[:count]
        scale = np.abs(values[best[0]]) or 1.0
        if krylov.complete or (residuals[best] <= tolerance * scale).all():
            break
        if krylov.full:
            kept = order[: krylov.capacity // 2]
            krylov.keep(values[kept], coordinates[:, kept])
    return Spectrum(values[best], residuals[best] / scale, krylov.steps)


def quadrature(apply: Apply, start: Start, steps: int) -> tuple[Array, Array]:
    """Return nodes and weights of a Gauss quadrature of the density of all eigenvalues.

    The weights add up to 1. For a polynomial of a degree below twice the steps, the weighted sum
    over nodes is what the start makes of it, and the mean of that over starts is the mean over
    eigenvalues.
    """
    krylov = _Krylov(apply, start, steps)
    krylov.step()
    while not (krylov.full or krylov.closed):
        krylov.step()
    nodes, coordinates, _ = krylov.ritz()
    return nodes, coordinates[0] ** 2
