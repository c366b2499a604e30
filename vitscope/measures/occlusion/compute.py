"""Patches that are dropped or shuffled, and what they cost in accuracy."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from vitscope.data.split import normalize
from vitscope.files.arrays import Array
from vitscope.image_size import ImageSize
from vitscope.measures.disturbed import Disturb, classify_disturbed
from vitscope.measures.given import OnModel
from vitscope.measures.intervals import spread, spread_of
from vitscope.measures.occlusion.grids import count_dropped, grid_of, grids_of

if TYPE_CHECKING:
    from torch import Tensor


# The seed and the number of draws.
Drawn = Mapping[str, int]


class Change(NamedTuple):
    """What is done with the patches of a grid: `none`, so many are `dropped`, all `shuffled`."""

    change: str
    grid: int
    dropped: int


def list_changes(
    grid: int | None,
    shares: Sequence[float],
    shuffled_grids: Sequence[int] | None,
    size: ImageSize,
) -> list[Change]:
    """Return the changes of images of a size: those that drop patches, then shufflings."""
    cut = grid_of(grid, size)
    dropped = [Change("dropped", cut, count_dropped(share, cut)) for share in sorted(shares)]
    return dropped + [
        Change("shuffled", each, 0) for each in sorted(grids_of(shuffled_grids, size))
    ]


def disturb_by(changes: Sequence[Change], drawn: Drawn, black: "Tensor") -> Disturb:
    """Return how patches of images are dropped and shuffled.

    Of one draw, the patches of a larger share are those of a smaller one and others.
    """
    from vitscope.measures.occlusion.patches import drop, orders, shuffle

    grids = {each.grid for each in changes}

    def disturb(images: "Tensor", rows: Sequence[int]) -> Iterator[Iterator["Tensor"]]:
        for draw in range(drawn["draws"]):
            order = {grid: orders(drawn["seed"], rows, draw, grid**2) for grid in grids}
            yield map(partial(changed, images, order), changes)

    def changed(images: "Tensor", order: Mapping[int, Array], each: Change) -> "Tensor":
        if each.change == "shuffled":
            return shuffle(images, order[each.grid], each.grid)
        return drop(images, order[each.grid], each.dropped, each.grid, black)

    return disturb


def occlusion_table(
    model: str,
    clean: Array,
    shares: Array,
    changes: Sequence[Change],
    classes: int,
    draws: int,
    bootstrap: Mapping[str, int],
) -> pd.DataFrame:
    """Return the table of one model from the results of `shares_found`."""
    table = pd.DataFrame([Change("none", 1, 0), *changes])
    found = np.column_stack([clean, shares]).astype(np.float64)
    ends = spread(found, **bootstrap)
    table = table.assign(
        model=model,
        share=table["dropped"] / table["grid"] ** 2,
        images=len(clean),
        draws=draws,
        chance=1 / classes,
        accuracy=found.mean(axis=0),
        ci_low=ends.low,
        ci_high=ends.high,
    )
    of_kind = {
        kind: mean_kept(found[:, 0], found[:, table["change"] == kind], **bootstrap)
        for kind in table["change"].unique()
    }
    return table.join(pd.DataFrame([of_kind[kind] for kind in table["change"]]))


def mean_kept(clean: Array, disturbed: Array, resamples: int, seed: int) -> dict[str, Any]:
    """Return the mean accuracy over disturbances divided by that without, and its interval.

    Without any accuracy nothing can be kept: NaN; the interval is, if it is so in one resample.
    """
    both = np.column_stack([clean, disturbed.mean(axis=1)])
    ends = spread_of(_ratios, both, resamples, seed).columns("mean_kept", "kept")
    value = float(_ratios(both.mean(axis=0, keepdims=True))[0, 0])
    return {"mean_kept": value} | {name: each[0] for name, each in ends.items()}


def _ratios(means: Array) -> Array:
    """Return the second of two means over the first, (resamples, 1)."""
    without, disturbed = means[:, :1], means[:, 1:]
    return np.divide(disturbed, without, out=np.full_like(without, np.nan), where=without > 0)


def measure_occlusion(
    given: OnModel,
    chosen: Mapping[str, Any],
    cut: Mapping[str, Any],
    drawn: Drawn,
    bootstrap: Mapping[str, int],
) -> pd.DataFrame:
    """Return the accuracy while patches of the `chosen` images are dropped or shuffled."""
    settings = given.settings
    changes = list_changes(**cut, size=settings["image_size"])
    channels = given.images.shape[0]
    black = normalize(np.zeros((channels, 1, 1), np.uint8), settings["mean"], settings["std"])
    found = classify_disturbed(given, chosen, disturb_by(changes, drawn, black))
    return occlusion_table(
        given.model, *found, changes, settings["classes"], drawn["draws"], bootstrap
    )
