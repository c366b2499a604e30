"""Eigenvalues of a large symmetric operator that can only be multiplied with vectors.

This is Lanczos with full orthogonalization: each new vector is made orthogonal to all kept vectors,
twice. Without orthogonalization, rounding lets eigenvalues that were already found appear again.
With it, the residuals that the recurrence gives are the true ones, up to rounding. Vectors have the
precision of the operator; the projected operator, which is small, has double precision.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from vitscope.files.arrays import Array

Apply = Callable[[Tensor], Tensor]

# Lanczos restarts from the better half of its approximations when it has this number of vectors, or
# three times the number of wanted eigenvalues if that is more.
LARGEST_BASIS = 64

# The part of a product outside the basis counts as zero if its norm is at most this multiple of the
# product's rounding error.
ROUNDING = 20

# Lanczos goes on for this number of steps after all wanted eigenvalues have converged: one of which
# the first vector has little comes late. Of 1,500 drawn spectra it lacked one of the five largest
# in 5 without these steps, in 3 with one of them, and in none with two, for 12 % more products.
SETTLED = 2


@dataclass(frozen=True)
class Start:
    """Draws the random vectors of a Lanczos process, which depend on `size` and `seed` alone.

    Vectors have the device and the data type of `like`.
    """

    size: int
    seed: tuple[int, ...]
    like: Tensor

    def chance(self) -> np.random.Generator:
        """Return a new generator, which draws all random vectors of a process."""
        return np.random.default_rng(self.seed)

    def signs(self, chance: np.random.Generator) -> Tensor:
        return torch.from_numpy(2.0 * chance.integers(0, 2, self.size) - 1).to(self.like)

    def noise(self, chance: np.random.Generator) -> Tensor:
        return torch.from_numpy(chance.standard_normal(self.size)).to(self.like)


class _Krylov:
    """Holds an orthonormal basis that grows by a vector per step, and the operator projected on it.

    `coupling` is the norm of the part of the last product that lies outside the basis.
    """

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
        """Tell whether the operator maps the span of the basis to itself.

        If so, the eigenvalues of the projected operator are exact eigenvalues of the operator.
        """
        return self.coupling == 0

    @property
    def full(self) -> bool:
        return self.length == self.capacity

    @property
    def complete(self) -> bool:
        return self.length == self._start.size

    def _orthogonalize(self, vector: Tensor) -> tuple[Array, float]:
        """Make a vector orthogonal to the basis, in place.

        Return the coordinates that were subtracted, and the norm of the rest.
        """
        basis = self._basis[: self.length]
        subtracted = torch.zeros_like(basis[:, 0])
        for _ in range(2):
            coordinates = basis @ vector
            vector -= coordinates @ basis
            subtracted += coordinates
        return subtracted.double().cpu().numpy(), float(torch.linalg.vector_norm(vector))

    def step(self) -> None:
        """Multiply the operator by the last vector; append the product's part outside the basis."""
        product = self._apply(self._basis[self.length])
        smallest = self._rounding * float(torch.linalg.vector_norm(product))
        self.length += 1
        self.steps += 1
        column, left = self._orthogonalize(product)
        self._projected[: self.length, self.length - 1] = column
        self._projected[self.length - 1, : self.length] = column
        self.coupling = 0.0 if self.complete or left <= smallest else left
        if self.complete:
            return
        following = product
        if self.closed:
            # The basis is closed: continue from a random vector outside it.
            following = self._start.noise(self._chance)
            _, left = self._orthogonalize(following)
        self._basis[self.length] = following / left

    def ritz(self) -> tuple[Array, Array, Array]:
        """Return approximate eigenvalues in ascending order, their eigenvectors, and residuals.

        The eigenvectors are columns of coordinates in the basis.
        """
        values, coordinates = np.linalg.eigh(self._projected[: self.length, : self.length])
        return values, coordinates, self.coupling * np.abs(coordinates[-1])

    def keep(self, values: Array, coordinates: Array) -> None:
        """Restart from the next vector and approximate eigenvectors, given by `coordinates`."""
        count = len(values)
        rotation = torch.from_numpy(np.ascontiguousarray(coordinates.T)).to(self._basis)
        self._basis[:count] = rotation @ self._basis[: self.length]
        self._basis[count] = self._basis[self.length]
        self._projected[:count, :count] = np.diag(values)
        self.length = count


@dataclass(frozen=True)
class Spectrum:
    """Holds the eigenvalues of largest magnitude, the largest first, and their residuals.

    The residual of an eigenvalue a with the unit vector v is |Av - av|, divided by the largest
    magnitude of any eigenvalue.
    """

    eigenvalues: Array
    residuals: Array
    steps: int


def _may_overtake(values: Array, residuals: Array, smallest: float, tolerance: float) -> bool:
    """Tell whether another approximation may become larger than the `smallest` of the best.

    One that has converged does not move any more.
    """
    reach = np.abs(values) + residuals
    return bool(((reach >= smallest) & (residuals > tolerance)).any())


def largest_eigenvalues(
    apply: Apply, start: Start, count: int, tolerance: float, most_steps: int
) -> Spectrum:
    """Return the `count` eigenvalues of largest magnitude, by thick-restart Lanczos.

    Lanczos ends when all residuals are within the tolerance, no other approximation may become one
    of the largest, and `SETTLED` more steps have changed neither. It ends at the latest after
    `most_steps` products, or after `count` if that is more. If several eigenvalues are exactly
    equal, it may find only one of them.
    """
    count = min(count, start.size)
    krylov, settled = _Krylov(apply, start, max(LARGEST_BASIS, 3 * count)), 0
    for _ in range(max(most_steps, count)):
        krylov.step()
        if krylov.length < count:
            continue
        values, coordinates, residuals = krylov.ritz()
        order = np.argsort(-np.abs(values), kind="stable")
        best, others = order[:count], order[count:]
        scale, smallest = np.abs(values[best[0]]) or 1.0, np.abs(values[best[-1]])
        error = tolerance * scale
        found = (residuals[best] <= error).all()
        doubted = _may_overtake(values[others], residuals[others], smallest, error)
        settled = settled + 1 if found and not doubted else 0
        if krylov.complete or settled > SETTLED:
            break
        if krylov.full:
            kept = order[: krylov.capacity // 2]
            krylov.keep(values[kept], coordinates[:, kept])
    return Spectrum(values[best], residuals[best] / scale, krylov.steps)


def lanczos_quadrature(apply: Apply, start: Start, steps: int) -> tuple[Array, Array]:
    """Return nodes and weights of a Gauss quadrature of the density of all eigenvalues.

    The weights add up to 1. For any polynomial p of a degree below 2 * `steps`, the weighted sum of
    p over the nodes is exactly v . p(A) v, where A is the operator and v the normalized first
    vector. The mean of this sum over random first vectors is the mean of p over all eigenvalues.
    """
    krylov = _Krylov(apply, start, steps)
    krylov.step()
    while not (krylov.full or krylov.closed):
        krylov.step()
    nodes, coordinates, _ = krylov.ritz()
    return nodes, coordinates[0] ** 2
