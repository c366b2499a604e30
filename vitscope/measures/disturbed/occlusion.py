from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from einops import rearrange, repeat
from torch import Tensor

from vitscope.data.split import normalize
from vitscope.files.arrays import Array
from vitscope.image_size import ImageSize
from vitscope.measures.bootstrap import ratio, spread, spread_of
from vitscope.measures.disturbed.classify import Disturb, classify_disturbed
from vitscope.measures.disturbed.measure import count_dropped, occlusion_grid, occlusion_grids
from vitscope.measures.given import OnModel
from vitscope.measures.measure import Given


def patch_orders(seed: int, rows: Sequence[int], draw: int, patches: int) -> Array:
    """Return the indices of the patches of each image in a random order, (N, patches).

    The order for an image depends only on the seed, the draw, the number of patches and the row of
    the image in the split.
    """
    words = [
        np.random.Philox(
            key=np.array([seed, row], np.uint64), counter=np.array([0, 0, patches, draw], np.uint64)
        ).random_raw(patches)
        for row in rows
    ]
    return np.argsort(np.stack(words), axis=1, kind="stable")


def drop_patches(images: Tensor, order: Array, dropped: int, grid: int, black: Tensor) -> Tensor:
    """Return images whose patches `order[:, :dropped]` are black."""
    kept = np.ones(order.shape, bool)
    np.put_along_axis(kept, order[:, :dropped], False, axis=1)
    height, width = (size // grid for size in images.shape[2:])
    mask = torch.from_numpy(kept).to(images.device)
    mask = repeat(mask, "n (down across) -> n 1 (down h) (across w)", down=grid, h=height, w=width)
    return torch.where(mask, images, black.to(images).view(-1, 1, 1))


def shuffle_patches(images: Tensor, order: Array, grid: int) -> Tensor:
    """Return images with the patches in the given order; places are numbered row by row."""
    whole, patches = "n c (down h) (across w)", "n (down across) c h w"
    cut = rearrange(images, f"{whole} -> {patches}", down=grid, across=grid)
    first = torch.arange(len(images), device=images.device)[:, None]
    moved = cut[first, torch.from_numpy(order).to(images.device)]
    return rearrange(moved, f"{patches} -> {whole}", down=grid)


class PatchChange(NamedTuple):
    """Describes what is done to the patches of an image.

    `change` is "none", "dropped" or "shuffled". `grid` is the number of patches along a side.
    `dropped` is the number of patches to drop; a shuffle moves all patches.
    """

    change: str
    grid: int
    dropped: int


def list_patch_changes(
    grid: int | None, shares: Sequence[float], shuffled_grids: Sequence[int] | None, size: ImageSize
) -> list[PatchChange]:
    """Return all changes for images of a size: dropped shares, then shuffled grids."""
    cut = occlusion_grid(grid, size)
    dropped = [PatchChange("dropped", cut, count_dropped(share, cut)) for share in sorted(shares)]
    shuffled = sorted(occlusion_grids(shuffled_grids, size))
    return [*dropped, *(PatchChange("shuffled", each, 0) for each in shuffled)]


def patch_disturbance(changes: Sequence[PatchChange], drawn: Given, black: Tensor) -> Disturb:
    """Return a function that yields, for each draw, the images after each change."""
    grids = {each.grid for each in changes}

    def change_images(images: Tensor, rows: Sequence[int]) -> Iterator[Iterator[Tensor]]:
        for draw in range(drawn["draws"]):
            order = {grid: patch_orders(drawn["seed"], rows, draw, grid**2) for grid in grids}
            yield map(partial(change_patches, images, order), changes)

    def change_patches(images: Tensor, order: Mapping[int, Array], each: PatchChange) -> Tensor:
        if each.change == "shuffled":
            return shuffle_patches(images, order[each.grid], each.grid)
        return drop_patches(images, order[each.grid], each.dropped, each.grid, black)

    return change_images


def occlusion_table(
    model: str,
    clean: Array,
    shares: Array,
    changes: Sequence[PatchChange],
    classes: int,
    draws: int,
    bootstrap: Given,
) -> pd.DataFrame:
    """Build a model's table `occlusion` from what `shares_found` returns.

    `clean` is (N,), and `shares` (N, K) has a column for each of `changes`.
    """
    table = pd.DataFrame([PatchChange("none", 1, 0), *changes])
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
    """Return the mean accuracy with changes, divided by the accuracy without, and its interval.

    The ratio is NaN if the accuracy without changes is 0. The interval is NaN if this accuracy is 0
    in a resample.
    """
    both = np.column_stack([clean, disturbed.mean(axis=1)])
    ends = spread_of(_ratios_kept, both, resamples, seed).columns("mean_kept", "kept")
    value = float(_ratios_kept(both.mean(axis=0, keepdims=True))[0, 0])
    return {"mean_kept": value} | {name: each[0] for name, each in ends.items()}


def _ratios_kept(means: Array) -> Array:
    return ratio(means[:, 1:], means[:, :1])


def measure_occlusion(
    given: OnModel, chosen: Given, cut: Given, drawn: Given, bootstrap: Given
) -> pd.DataFrame:
    settings = given.settings
    changes = list_patch_changes(**cut, size=settings["image_size"])
    channels = given.images.shape[0]
    black = normalize(np.zeros((channels, 1, 1), np.uint8), settings["mean"], settings["std"])
    found = classify_disturbed(given, chosen, patch_disturbance(changes, drawn, black))
    return occlusion_table(
        given.model, *found, changes, settings["classes"], drawn["draws"], bootstrap
    )
