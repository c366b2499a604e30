from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from vitscope.errors import VitscopeError, quoted
from vitscope.files.arrays import Array
from vitscope.measures.given import OnModel
from vitscope.measures.measure import Given
from vitscope.measures.shown import images_shown, on_subject
from vitscope.measures.tokens.compute import find_outliers, token_norms
from vitscope.measures.tokens.measure import TokenPcaSettings
from vitscope.networks.finding.capture import capturing
from vitscope.networks.finding.cut_points import CutPoint, named_cut_point

COMPONENTS = 3


class PcaBasis(NamedTuple):
    """Holds the mean of tokens, and the loadings (count, C) of components of the tokens.

    `explained` has the share of the variance of each component.
    """

    mean: Array
    loadings: Array
    explained: Array

    @classmethod
    def of(cls, tokens: Array, count: int) -> Self:
        """Find the first `count` components of tokens (T, C)."""
        mean = tokens.mean(axis=0)
        centred = tokens - mean
        _, values, loadings = np.linalg.svd(centred, full_matrices=False)
        variances = values[:count] ** 2
        # Leave out components whose singular values are rounding errors.
        there = values[:count] > values[0] * np.finfo(tokens.dtype).eps * max(tokens.shape)
        loadings = loadings[:count] * there[:, None]
        largest = np.take_along_axis(loadings, np.abs(loadings).argmax(axis=1)[:, None], axis=1)
        loadings *= np.sign(largest)
        shares = variances / max(float((centred**2).sum()), np.finfo(np.float64).tiny)
        missing = count - len(variances)
        return cls(mean, np.pad(loadings, ((0, missing), (0, 0))), np.pad(shares, (0, missing)))

    def project(self, tokens: Array) -> Array:
        """Return the components of tokens (T, C) as (T, count)."""
        projected: Array = (tokens - self.mean) @ self.loadings.T
        return projected


def border_positions(height: int, width: int) -> Array:
    """Return for each position of a map, row by row, whether it is at the border."""
    inside = np.zeros((height, width), bool)
    inside[1:-1, 1:-1] = True
    return ~inside.ravel()


def foreground_sign(first: Array, at_border: Array) -> int:
    """Return the sign, 1 or -1, by which `first` becomes positive in the foreground.

    `first` holds the first component of tokens.
    """

    def border_share_and_size(side: Array) -> tuple[float, int]:
        return float(at_border[side].sum() / max(side.sum(), 1)), int(side.sum())

    return -1 if border_share_and_size(first < 0) < border_share_and_size(first > 0) else 1


def choose_pca_point(
    model: str, blocks: pd.DataFrame, points: Sequence[CutPoint], wanted: str | int | None
) -> CutPoint:
    """Return the cut point `wanted`; if None, the last whose map has several positions."""
    if wanted is None:
        several = blocks.loc[blocks["height"] * blocks["width"] > 1, "index"]
        if len(several):
            return points[int(several.iloc[-1])]
        raise VitscopeError(
            f"models.{model}: every feature map has a single position: leave token_pca out."
        )
    return named_cut_point("token_pca", model, points, wanted)


@torch.inference_mode()
def read_pca_map(network: nn.Module, model: str, point: CutPoint, image: Tensor) -> Array:
    """Return the feature map (C, H, W) of an image at a cut point."""
    found: list[Array] = []

    def keep_map(_: int, maps: Tensor) -> None:
        found.append(maps[0].double().cpu().numpy().copy())

    with capturing(network, [point], keep_map):
        network(image)
    if not np.isfinite(found[0]).all():
        raise VitscopeError(
            f"models.{model}: the feature map at the cut point {quoted(point.name)} is not "
            f"finite: check the checkpoint, and the mean and std of the data set."
        )
    return found[0]


class Components(NamedTuple):
    """Holds the first component of all tokens of some images, and components of the foreground."""

    settings: TokenPcaSettings
    first: PcaBasis
    of_foreground: PcaBasis

    @classmethod
    def of(cls, maps: Array, settings: TokenPcaSettings) -> Self:
        """Find the components of maps (N, C, H, W) of all images together."""
        tokens, left_out = tokens_of_maps(maps), find_outliers(token_norms(maps), settings.outliers)
        at_border = np.tile(border_positions(*maps.shape[2:]), (len(maps), 1))
        kept = tokens[~left_out]
        first = PcaBasis.of(kept, 1)
        sign = foreground_sign(first.project(kept)[:, 0], at_border[~left_out])
        first = first._replace(loadings=sign * first.loadings)
        there = first.project(kept)[:, 0] > 0 if settings.foreground else np.full(len(kept), True)
        if there.any():
            return cls(settings, first, PcaBasis.of(kept[there], COMPONENTS))
        channels = maps.shape[1]
        none = PcaBasis(np.zeros(channels), np.zeros((COMPONENTS, channels)), np.zeros(COMPONENTS))
        return cls(settings, first, none)

    def split(self, maps: Array) -> dict[str, Array]:
        """Return columns of the table for maps (N, C, H, W), each (N, positions, ...)."""
        tokens, left_out = (
            tokens_of_maps(maps),
            find_outliers(token_norms(maps), self.settings.outliers),
        )
        first = np.where(left_out, np.nan, self.first.project(tokens)[..., 0])
        foreground = first > 0 if self.settings.foreground else ~left_out
        components = np.full((*first.shape, COMPONENTS), np.nan)
        components[foreground] = self.of_foreground.project(tokens[foreground])
        return {
            "first": first,
            "components": components,
            "foreground": foreground,
            "outliers": left_out,
        }


def tokens_of_maps(maps: Array) -> Array:
    """Return the tokens (N, positions, C) of maps (N, C, H, W)."""
    return maps.reshape(*maps.shape[:2], -1).transpose(0, 2, 1)


def measure_token_pca(given: OnModel, settings: TokenPcaSettings, chosen: Given) -> pd.DataFrame:
    given.network.eval().to(given.device)
    point = choose_pca_point(given.model, given.blocks, given.cut_points, settings.cut_point)
    shown = [*images_shown(given, **chosen)]
    maps = np.stack([read_pca_map(given.network, given.model, point, each.image) for each in shown])
    height, width = maps.shape[2:]
    components = Components.of(maps, settings)
    found = components.split(maps)
    facts = {
        "model": given.model,
        "of": point.name,
        "height": height,
        "width": width,
        "explained": components.of_foreground.explained,
    }
    rows: list[dict[str, Any]] = []
    for number, each in enumerate(shown):
        of_image = {name: values[number] for name, values in found.items()}
        shares = {name: float(of_image[name].mean()) for name in ("foreground", "outliers")}
        subject = on_subject(of_image["foreground"], (height, width), given.images.mask(each.row))
        of_image["components"] = of_image["components"].ravel()
        of_image |= {"image": each.row, "picture": each.picture, **shares, **subject}
        rows.append({**facts, **of_image})
    return pd.DataFrame(rows)
