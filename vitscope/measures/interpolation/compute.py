from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from vitscope.data.split import known_labels, rows_to_classify
from vitscope.errors import VitscopeError
from vitscope.files.arrays import Array
from vitscope.measures.given import OnLine, OnModel
from vitscope.measures.interpolation.measure import TABLE
from vitscope.networks.running.line import (
    moving_to,
    resetting_statistics,
    running_norms,
    why_no_line,
)
from vitscope.networks.running.predictions import Integers, predict
from vitscope.training.batches import AugmentedImages

# How far the logits of the second network may be off at the end of the line, over the largest.
_ROUNDING = 1e-3


@torch.no_grad()
def measure_interpolation(
    given: OnLine, images: int | None, seed: int | None, points: int, reset_images: int
) -> pd.DataFrame:
    """Return the loss and the error at points of the line between two networks."""
    first, names = given.first, (given.first.model, given.other)
    network, other = (each.eval().to(first.device) for each in (first.network, given.network))
    if why := why_no_line(network, other, names):
        raise VitscopeError(why)
    rows = rows_to_classify(first.images, images, seed)
    labels = known_labels(first.images, rows)
    shares, curves = np.linspace(0, 1, points), dict[bool, list[dict[str, float]]]({False: []})
    augmented = given.augmented if running_norms(network) else None
    with moving_to(network, other) as move:
        move(1)
        _refuse_another_function(given, first.batches(rows[: first.batch_size]))
        for share in shares.tolist():
            move(share)
            curves[False].append(_score_point(first, rows, labels))
            if augmented is not None:
                _reset_statistics(first, augmented, reset_images)
                curves.setdefault(True, []).append(_score_point(first, rows, labels))
    found = [
        pd.DataFrame(curve).assign(share=shares, reset=reset) for reset, curve in curves.items()
    ]
    for curve in found:
        for value in ("nll", "error"):
            curve[f"{value}_excess"] = excess_over_ends(shares, curve[value].to_numpy())
    table = pd.concat(found, ignore_index=True)
    return table.assign(model=names[0], other_model=names[1], images=len(rows))[[*TABLE.columns]]


def excess_over_ends(shares: Array, values: Array) -> Array:
    """Return by how much values are above the straight line between the first and the last."""
    over: Array = values - ((1 - shares) * values[0] + shares * values[-1])
    return over


def _refuse_another_function(given: OnLine, batches: Iterable[Tensor]) -> None:
    """Refuse networks that differ in more than weights, as in how many heads share these."""
    first, networks = given.first, (given.first.network, given.network)
    for batch in batches:
        ours, theirs = (each(batch.to(first.device)).float() for each in networks)
        off, most = (ours - theirs).abs().max(), _ROUNDING * theirs.abs().max()
        if theirs.isfinite().all() and not off <= most:
            raise VitscopeError(
                f"'{first.model}' with the weights of '{given.other}' computes something else than "
                f"'{given.other}': a line between weights needs two networks that are built alike."
            )


def _reset_statistics(given: OnModel, augmented: AugmentedImages, most: int) -> None:
    count = min(most, len(augmented))
    size = min(given.batch_size, count)
    with resetting_statistics(given.network):
        for batch, _ in augmented.batches(size, count - count % size):
            given.network(batch.to(given.device))


def _score_point(given: OnModel, rows: Sequence[int], labels: Integers) -> dict[str, float]:
    """Return the mean NLL and the error in percent; both are NaN if logits are not finite."""
    batches, outputs = given.batches(rows), given.images.outputs
    found = predict(given.network, batches, labels, given.device, outputs, finite=False)
    nll = found["nll"].mean(skipna=False)
    if not np.isfinite(nll):
        return {"nll": np.nan, "error": np.nan}
    return {"nll": nll, "error": 100 * (found["prediction"] != found["label"]).mean()}
