"""The density of all eigenvalues of the Hessian."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from vitscope.measures.given import OnLoss
from vitscope.measures.hessian.lanczos import quadrature
from vitscope.measures.hessian.operator import Hessian, Loss, over_batches
from vitscope.progress import Say


def density(
    loss: Loss, batches: Sequence[int], *, probes: int, steps: int, say: Say = print
) -> pd.DataFrame:
    """Return the density of all eigenvalues of each batch: nodes and weights for each probe."""

    def measure(batch: int, hessian: Hessian) -> pd.DataFrame:
        tables = []
        for probe in range(probes):
            nodes, weights = quadrature(hessian, hessian.start(batch, probe), steps)
            table = {"batch": batch, "probe": probe, "node": nodes, "weight": weights}
            tables.append(pd.DataFrame(table))
        return pd.concat(tables)

    return over_batches(loss, batches, measure, say)


def measure_hessian_density(
    given: OnLoss, batches: Sequence[int], batch_size: int, weight_decay: float, **settings: Any
) -> pd.DataFrame:
    loss = Loss(given.network, given.images, batch_size, weight_decay, given.device)
    return density(loss, batches, say=given.say, **settings)
