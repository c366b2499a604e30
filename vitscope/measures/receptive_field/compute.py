from collections.abc import Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from vitscope.claims.intervals import RESAMPLED
from vitscope.data.split import select
from vitscope.errors import VitscopeError, nearest, quoted
from vitscope.files.arrays import Array
from vitscope.measures.bootstrap import spread_of
from vitscope.measures.given import OnModel
from vitscope.measures.measure import Given
from vitscope.measures.receptive_field.measure import CLAIMED, SHARES, ReceptiveFieldSettings
from vitscope.networks.finding.capture import capturing_tensors
from vitscope.networks.finding.cut_points import CUT_POINT, CutPoint

# The number of cut points that are chosen in a network of one stage, from the stem to the last.
POINTS = 5


def choose_receptive_field_points(
    model: str, points: Sequence[CutPoint], wanted: Sequence[str]
) -> list[int]:
    """Return the indices, in order, of the cut points that match a name or pattern in `wanted`.

    If `wanted` is empty, choose the last cut point of each stage or, in a network of one stage,
    evenly spaced ones.
    """
    if not wanted:
        last = {point.stage: index for index, point in enumerate(points)}
        if len(last) <= 2:
            return sorted({*np.linspace(0, len(points) - 1, POINTS).round().astype(int).tolist()})
        return sorted(last.values())
    names = [point.name for point in points]
    where = f"models.{model}: analysis.receptive_field.cut_points"
    for name in wanted:
        if name not in names and not set(name) & {*"*?["}:
            raise VitscopeError(
                f"{where}: the network has no cut point {quoted(name)}.{nearest(name, names)} "
                f"`vitscope check` lists them."
            )
    found = [
        index
        for index, name in enumerate(names)
        if any(fnmatchcase(name, pattern) or name == pattern for pattern in wanted)
    ]
    if not found:
        raise VitscopeError(
            f"{where}: none of {', '.join(map(quoted, wanted))} fits a cut point of the network: "
            f"`vitscope check` lists them."
        )
    return found


class _Reached(Exception):  # noqa: N818
    """Ends a pass of the network once the value at the last point is known."""


def central_value(point: CutPoint, tensor: Tensor) -> Tensor:
    """Return the sum of all channels at the central position, over all images."""
    maps = point.layout.to_nchw(tensor)
    return maps[:, :, maps.shape[2] // 2, maps.shape[3] // 2].sum()


def pixel_contributions(
    network: nn.Module, points: Sequence[CutPoint], images: Tensor
) -> list[Tensor]:
    """Return, for each cut point, how much each pixel (N, H, W) contributes to the central value.

    The network's values for an image must not depend on other images.
    """
    images = images.detach().requires_grad_()
    with torch.enable_grad():
        found = []
        values = _central_values(network, points, images)
        for number, (point, value) in enumerate(zip(points, values, strict=True), start=1):
            if not value.requires_grad:
                raise VitscopeError(
                    f"The network computes its values at the cut point {quoted(point.name)} "
                    f"without gradients, so that no receptive field can be measured there."
                )
            more = number < len(points)
            (gradient,) = torch.autograd.grad(value, images, retain_graph=more)
            found.append(gradient.abs().sum(1))
    return found


def _central_values(network: nn.Module, points: Sequence[CutPoint], images: Tensor) -> list[Tensor]:
    found: dict[int, Tensor] = {}
    returned: dict[int, tuple[Tensor, int]] = {}

    def keep_central_value(index: int, tensor: Tensor) -> None:
        if points[index].operation is not None:
            # The result enters the autograd graph after the operation: read it after the pass.
            returned[index] = tensor, tensor._version
            return
        found[index] = central_value(points[index], tensor)
        if index == len(points) - 1:
            raise _Reached

    with capturing_tensors(network, points, keep_central_value), suppress(_Reached):
        network(images)
    for index, (tensor, version) in returned.items():
        if tensor._version != version:
            raise VitscopeError(
                f"The network changes its values at the cut point {quoted(points[index].name)} in "
                f"place, so that no receptive field can be measured there: choose others in "
                f"analysis.receptive_field.cut_points."
            )
        found[index] = central_value(points[index], tensor)
    return [found[index] for index in range(len(points))]


class FieldSquares:
    """The squares around the central pixel of an image.

    If a side is even, the central pixel is the one after the middle.
    """

    def __init__(self, height: int, width: int) -> None:
        rows, columns = (abs(np.arange(size) - size // 2) for size in (height, width))
        away = np.maximum(rows[:, None], columns)
        distances, ring = np.unique(away, return_inverse=True)
        self._sides = 2 * distances + 1
        self._ring = ring.ravel()
        self._areas = np.bincount(self._ring).cumsum() / self._ring.size

    def rings(self, maps: Array) -> Array:
        """Sum maps (N, H, W) over rings of pixels, and return (N, R).

        A ring is a square without the next smaller square.
        """
        flat = maps.reshape(len(maps), -1)
        return np.stack([np.bincount(self._ring, weights=each) for each in flat])

    def holding(self, rings: Array, share: float) -> tuple[Array, Array]:
        """Return side and area of the smallest square that holds `share` of the sum of `rings`.

        `rings` (..., R) has sums over rings; side and area are NaN if all of them are zero.
        """
        inside = rings.cumsum(axis=-1)
        first = (inside >= share * inside[..., -1:]).argmax(axis=-1)
        nothing = inside[..., -1] == 0
        sides, areas = (
            np.where(nothing, np.nan, of_rings[first]) for of_rings in (self._sides, self._areas)
        )
        return sides, areas


class Field:
    """Collects the effective receptive field at a cut point, image by image."""

    def __init__(self, point: CutPoint, block: Mapping[Any, Any], image: tuple[int, int]) -> None:
        self._point, self._block = point, block
        self._squares = FieldSquares(*image)
        self._sum = np.zeros(image)
        self._rings: list[Array] = []

    def add(self, contributed: Tensor) -> None:
        """Add the contributions (N, H, W) of all pixels of another batch of images."""
        if not bool(contributed.isfinite().all()):
            raise VitscopeError(
                f"The gradients at the cut point {quoted(self._point.name)} are not finite: check "
                f"the checkpoint, and the mean and std of the data set."
            )
        maps = contributed.double().cpu().numpy()
        self._sum += maps.sum(axis=0)
        self._rings.append(self._squares.rings(maps))

    def row(self, resamples: int, seed: int) -> dict[str, Any]:
        rings = np.concatenate(self._rings)
        mean = self._sum / len(rings)
        return {
            **self._block,
            "images": len(rings),
            "row": self._block["height"] // 2,
            "column": self._block["width"] // 2,
            **self._sides_and_areas(rings, mean, resamples, seed),
            "image_width": mean.shape[1],
            "contributions": mean.ravel(),
        }

    def _sides_and_areas(
        self, rings: Array, mean: Array, resamples: int, seed: int
    ) -> dict[str, Any]:
        logs = self._squares.rings(np.log10(mean + 1)[None])[0]
        spread = spread_of(self._areas_of_shares, rings, resamples, seed)
        kept = spread.kept(SHARES.index(CLAIMED))
        found: dict[str, Any] = {f"area_{CLAIMED}{RESAMPLED}": kept}
        for percent, low, high in zip(SHARES, spread.low, spread.high, strict=True):
            side, area = self._squares.holding(rings.mean(axis=0), percent / 100)
            _, of_logs = self._squares.holding(logs, percent / 100)
            columns = {"side": side, "area": area, "low": low, "high": high, "log_area": of_logs}
            found |= {f"{name}_{percent}": float(value) for name, value in columns.items()}
        return found

    def _areas_of_shares(self, rings: Array) -> Array:
        return np.stack([self._squares.holding(rings, each / 100)[1] for each in SHARES], axis=1)


def measure_receptive_field(
    given: OnModel, settings: ReceptiveFieldSettings, seed: int | None, bootstrap: Given
) -> pd.DataFrame:
    which = choose_receptive_field_points(given.model, given.cut_points, settings.cut_points)
    points = [given.cut_points[index] for index in which]
    blocks = given.blocks.set_index("index", drop=False).loc[which, [*CUT_POINT]]
    height, width = given.images.shape[1:]
    fields = [
        Field(point, block, (height, width))
        for point, block in zip(points, blocks.to_dict("records"), strict=True)
    ]
    network = given.network.eval().to(given.device).requires_grad_(False)
    count = min(settings.images, len(given.images))
    rows = select(len(given.images), count, seed).tolist()
    for batch in given.batches(rows, settings.batch_size):
        found = pixel_contributions(network, points, batch.to(given.device))
        for field, contributed in zip(fields, found, strict=True):
            field.add(contributed)
    return pd.DataFrame([field.row(**bootstrap) for field in fields])
