"""The largest eigenvalues of the Hessian."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from vitscope.measures.given import OnLoss
from vitscope.measures.hessian.lanczos import largest
from vitscope.measures.hessian.operator import Hessian, Loss, over_batches
from vitscope.progress import Say


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

    return over_batches(loss, batches, measure, say)


def measure_hessian(
    given: OnLoss, batches: Sequence[int], batch_size: int, weight_decay: float, **settings: Any
) -> pd.DataFrame:
    loss = Loss(given.network, given.images, batch_size, weight_decay, given.device)
    return largest_eigenvalues(loss, batches, say=given.say, **settings)
