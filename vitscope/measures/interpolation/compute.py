from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from vitscope.data.split import known_labels, rows_to_classify
from vitscope.errors import VitscopeError
from vitscope.files.arrays import Array
from vitscope.files.pairs import PREFIXES
from vitscope.measures.given import OnLine, OnModel
from vitscope.measures.interpolation.measure import PLANE_TABLE, TABLE
from vitscope.networks.running.line import (
    moving_to,
    resetting_statistics,
    running_norms,
    triangle_of,
    why_no_line,
)
from vitscope.networks.running.prediction_doubts import Integers
from vitscope.networks.running.predictions import predict
from vitscope.training.batches import AugmentedImages

# How far the logits of another network may be off at the end of the line, over the largest.
_ROUNDING = 1e-3
# The least height of a triangle of networks over its longest side, as a share of this side.
_FLAT = 1e-3

# Scores the network that has these shares of the weights of the others; with True, after a reset.
_Score = Callable[[Sequence[float], bool], dict[str, float]]


@torch.no_grad()
def measure_interpolation(
    given: OnLine, images: int | None, seed: int | None, points: int, reset_images: int
) -> pd.DataFrame:
    """Return the loss and the error at points of the line between two networks."""
    shares, curves = np.linspace(0, 1, points), []
    with _scoring(given, images, seed, reset_images) as (score, resets):
        for reset in [False, True][: 1 + resets]:
            curve = pd.DataFrame([score([share], reset) for share in shares.tolist()])
            curves.append(curve.assign(share=shares, reset=reset))
    for curve in curves:
        for value in ("nll", "error"):
            curve[f"{value}_excess"] = excess_over_ends(shares, curve[value].to_numpy())
    return _name_models(pd.concat(curves, ignore_index=True), given)[[*TABLE.columns]]


def excess_over_ends(shares: Array, values: Array) -> Array:
    """Return by how much values are above the straight line between the first and the last."""
    over: Array = values - ((1 - shares) * values[0] + shares * values[-1])
    return over


@torch.no_grad()
def measure_plane(
    given: OnLine,
    images: int | None,
    seed: int | None,
    points: int,
    margin: float,
    reset_images: int,
) -> pd.DataFrame:
    """Return the loss and the error of three networks, and at points of the plane through them."""
    with _scoring(given, images, seed, reset_images) as (score, resets):
        # Rows: the networks, in order.
        corners = _corners_of_triangle(given)
        low, high = corners.min(0), corners.max(0)
        around = margin * (high - low)
        x, y = np.linspace(low - around, high + around, points).T
        grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
        shares = np.linalg.solve(corners[1:].T, grid.T).T
        # Exactly those of the networks, which a solution need not give.
        at = pd.DataFrame(np.concatenate([corners, grid]), columns=["x", "y"])
        at[["other_share", "third_share"]] = np.concatenate([[[0, 0], [1, 0], [0, 1]], shares])
        at["network"] = [1, 2, 3] + [0] * len(grid)
        at["reset"] = resets & (at["network"] == 0)
        where = zip(at[["other_share", "third_share"]].to_numpy(), at["reset"], strict=True)
        found = pd.DataFrame([score(each.tolist(), reset) for each, reset in where])
    return _name_models(at.join(found), given)[[*PLANE_TABLE.columns]]


def _corners_of_triangle(given: OnLine) -> Array:
    corners = triangle_of(given.first.network, *given.networks)
    longest = max(np.linalg.norm(one - other) for one in corners for other in corners)
    if not corners[1, 0] * corners[2, 1] > _FLAT * longest**2:
        raise VitscopeError(
            f"The weights of '{given.first.model}', '{given.others[0]}' and '{given.others[1]}' "
            f"lie on one line, or two of them are the same: a plane needs three networks that "
            f"span a triangle."
        )
    return corners


@contextmanager
def _scoring(
    given: OnLine, images: int | None, seed: int | None, reset_images: int
) -> Iterator[tuple[_Score, bool]]:
    """Yield what scores networks between the given ones, and whether it can reset statistics.

    Refuse networks that are not of one shape and function.
    """
    first = given.first
    network, *others = (each.eval().to(first.device) for each in (first.network, *given.networks))
    for name, other in zip(given.others, others, strict=True):
        if why := why_no_line(network, other, (first.model, name)):
            raise VitscopeError(why)
    rows = rows_to_classify(first.images, images, seed)
    labels = known_labels(first.images, rows)
    augmented = given.augmented if running_norms(network) else None
    with moving_to(network, *others) as move:
        for name, other, whole in zip(given.others, others, np.eye(len(others)), strict=True):
            move(*whole.tolist())
            _refuse_another_function(given, name, other, first.batches(rows[: first.batch_size]))
        move()

        def score(shares: Sequence[float], reset: bool) -> dict[str, float]:
            move(*shares)
            if reset and augmented is not None:
                _reset_statistics(first, augmented, reset_images)
            return {"images": len(rows), **_score_point(first, rows, labels)}

        yield score, augmented is not None


def _name_models(table: pd.DataFrame, given: OnLine) -> pd.DataFrame:
    models = zip(PREFIXES, (given.first.model, *given.others), strict=False)
    return table.assign(**{f"{prefix}model": model for prefix, model in models})


def _refuse_another_function(
    given: OnLine, name: str, other: nn.Module, batches: Iterable[Tensor]
) -> None:
    """Refuse networks that differ in more than weights, as in how many heads share these."""
    first = given.first
    for batch in batches:
        ours, theirs = (each(batch.to(first.device)).float() for each in (first.network, other))
        off, most = (ours - theirs).abs().max(), _ROUNDING * theirs.abs().max()
        if theirs.isfinite().all() and not off <= most:
            raise VitscopeError(
                f"'{first.model}' with the weights of '{name}' computes something else than "
                f"'{name}': a line between weights needs two networks that are built alike."
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
