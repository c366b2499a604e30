"""The tables of the Hessian: what is measured of each batch of augmented images."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch import nn

from vitscope.measures.hessian import operator
from vitscope.measures.hessian.lanczos import largest, quadrature
from vitscope.measures.hessian.operator import Hessian
from vitscope.progress import Progress, Say
from vitscope.training.augmented import Augmented

# Images that the Hessian is checked on before any spectrum: whether it can be trusted does not
# depend on how many there are.
CHECKED = 8


@dataclass(frozen=True)
class Loss:
    """The loss whose Hessian is measured: of which model, on what, with which weight decay."""

    model: nn.Module
    images: Augmented
    batch_size: int
    weight_decay: float
    device: torch.device | None = None

    def hessian(self, batch: int, images: int | None = None) -> Hessian:
        """Return the Hessian on a batch, or on the first images of it."""
        first = batch * self.batch_size
        pixels, targets = self.images.rows(first, first + (images or self.batch_size))
        return operator.of_model(
            self.model.to(self.device),
            pixels.to(self.device),
            targets.to(self.device),
            self.weight_decay,
        )


def _over_batches(
    loss: Loss, batches: Sequence[int], measure: Callable[[int, Hessian], pd.DataFrame], say: Say
) -> pd.DataFrame:
    checked = min(CHECKED, loss.batch_size)
    operator.require_deterministic(lambda: loss.hessian(batches[0], checked))
    progress = Progress(len(batches), "batches", say)
    tables = []
    for batch in batches:
        tables.append(measure(batch, loss.hessian(batch)))
        progress.advance()
    return pd.concat(tables, ignore_index=True)


def largest_eigenvalues(
    loss: Loss,
    batches: Sequence[int],
    *,
    top: int,
    tolerance: float,
    iterations: int,
    say: Say = print,
) -> pd.DataFrame:
    """Return the `top` eigenvalues of the largest magnitude of each batch, a row for each."""

    def measure(batch: int, hessian: Hessian) -> pd.DataFrame:
        found = largest(hessian, hessian.start(batch), top, tolerance, iterations)
        converged = found.residuals <= tolerance
        if not converged.all():
            say(
                f"batch {batch}: {(~converged).sum()} of {len(converged)} eigenvalues are not "
                f"within {tolerance:g} after {found.steps} steps, but within "
                f"{found.residuals.max():.2g}: raise analysis.hessian.iterations"
            )
        return pd.DataFrame(
            {
                "batch": batch,
                "images": loss.batch_size,
                "rank": np.arange(1, len(converged) + 1),
                "eigenvalue": found.eigenvalues,
                "residual": found.residuals,
                "iterations": found.steps,
                "converged": converged,
            }
        )

    return _over_batches(loss, batches, measure, say)


def density(
    loss: Loss, batches: Sequence[int], *, probes: int, steps: int, say: Say = print
) -> pd.DataFrame:
    """Return nodes and weights of the density of all eigenvalues of each batch, for each probe."""

    def measure(batch: int, hessian: Hessian) -> pd.DataFrame:
        tables = []
        for probe in range(probes):
            nodes, weights = quadrature(hessian, hessian.start(batch, probe), steps)
            table = {"batch": batch, "probe": probe, "node": nodes, "weight": weights}
            tables.append(pd.DataFrame(table))
        return pd.concat(tables)

    return _over_batches(loss, batches, measure, say)
