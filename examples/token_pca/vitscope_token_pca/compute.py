"""The principal components of the tokens of some images together."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import torch
from PIL import Image

from vitscope.errors import VitscopeError, nearest, quoted
from vitscope.files.arrays import Array
from vitscope.measures.given import OnModel
from vitscope.measures.shown import images_shown
from vitscope.measures.token_norms.compute import outliers, token_norms
from vitscope.networks.finding.capture import capturing
from vitscope.networks.finding.cut_points import CutPoint
from vitscope_token_pca.measure import Settings

COMPONENTS = 3


def principal_components(tokens: Array, count: int) -> tuple[Array, Array]:
    """Return components of tokens (T, C) as (T, count), and their shares of the variance.

    The largest loading of each, in absolute value, is positive. Those that do not exist are zero.
    """
    centred = tokens - tokens.mean(axis=0)
    left, values, loadings = np.linalg.svd(centred, full_matrices=False)
    left, values, loadings = left[:, :count], values[:count], loadings[:count]
    largest = np.take_along_axis(loadings, np.abs(loadings).argmax(axis=1)[:, None], axis=1)
    components = left * values * np.sign(largest[:, 0])
    shares = values**2 / max(float((centred**2).sum()), np.finfo(np.float64).tiny)
    missing = count - len(values)
    return np.pad(components, ((0, 0), (0, missing))), np.pad(shares, (0, missing))


def border(height: int, width: int) -> Array:
    """Tell of each position of a map, row by row, whether it is at the border."""
    inside = np.zeros((height, width), bool)
    inside[1:-1, 1:-1] = True
    return ~inside.ravel()


def towards_foreground(first: Array, at_border: Array) -> Array:
    """Return a component with the sign that makes the foreground positive.

    It is the side a smaller share of whose tokens is at the border, or else the smaller side.
    """

    def judge(side: Array) -> tuple[float, int]:
        return float(at_border[side].sum() / max(side.sum(), 1)), int(side.sum())

    return -first if judge(first < 0) < judge(first > 0) else first


def choose_point(given: OnModel, wanted: str | int | None) -> int:
    """Return the number of the cut point that the settings name."""
    blocks, points = given.blocks, given.cut_points
    assert blocks is not None
    if wanted is None:
        several = blocks.loc[blocks["height"] * blocks["width"] > 1, "index"]
        if len(several):
            return int(several.iloc[-1])
        raise VitscopeError(
            f"models.{given.model}: every feature map has a single position: leave token_pca out."
        )
    names = [point.name for point in points]
    if isinstance(wanted, int) and -len(points) <= wanted < len(points):
        return wanted % len(points)
    if wanted in names:
        return names.index(str(wanted))
    raise VitscopeError(
        f"analysis.token_pca.cut_point: found {quoted(wanted)}, allowed for models.{given.model}: "
        f"{-len(points)} to {len(points) - 1}, or the name of a cut point."
        f"{nearest(str(wanted), names)} `vitscope check` lists them."
    )


@torch.inference_mode()
def read_maps(given: OnModel, point: CutPoint, image: torch.Tensor) -> Array:
    """Return the feature map (C, H, W) of an image at a cut point."""
    found: list[Array] = []

    def keep(_: int, maps: torch.Tensor) -> None:
        found.append(maps[0].double().cpu().numpy().copy())

    with capturing(given.network, [point], keep):
        given.network(image)
    if not np.isfinite(found[0]).all():
        raise VitscopeError(
            f"models.{given.model}: the feature map at the cut point {quoted(point.name)} is not "
            f"finite: check the checkpoint, and the mean and std of the data set."
        )
    return found[0]


def components_of(maps: Array, settings: Settings) -> dict[str, Array]:
    """Return what the table has of maps (N, C, H, W) of all images, each (N, positions, ...)."""
    images, channels, height, width = maps.shape
    tokens = maps.reshape(images, channels, -1).transpose(0, 2, 1)
    left_out = outliers(token_norms(maps), settings.outliers)
    at_border = np.tile(border(height, width), (images, 1))
    first = np.full(left_out.shape, np.nan)
    found = principal_components(tokens[~left_out], 1)[0][:, 0]
    first[~left_out] = towards_foreground(found, at_border[~left_out])
    foreground = first > 0 if settings.foreground else ~left_out
    components, explained = np.full((*first.shape, COMPONENTS), np.nan), np.zeros(COMPONENTS)
    if foreground.any():
        components[foreground], explained = principal_components(tokens[foreground], COMPONENTS)
    return {
        "first": first,
        "components": components.reshape(images, -1),
        "explained": np.tile(explained, (images, 1)),
        "foreground": foreground,
        "outliers": left_out,
    }


def on_subject(foreground: Array, mask: Array | None, height: int, width: int) -> dict[str, Any]:
    """Return the share of the subject in the foreground and in the image; null without a mask."""
    if mask is None:
        return {"on_subject": None, "subject": None}
    plane = Image.fromarray(mask.astype(np.float32))
    # Average the mask over each position.
    covered = np.asarray(plane.resize((width, height), Image.Resampling.BOX)).ravel()
    inside = float(covered[foreground].mean()) if foreground.any() else None
    return {"on_subject": inside, "subject": float(covered.mean())}


def measure_token_pca(
    given: OnModel, settings: Settings, chosen: Mapping[str, Any]
) -> pd.DataFrame:
    """Return the components of the tokens of the images shown."""
    given.network.eval().to(given.device)
    point: CutPoint = given.cut_points[choose_point(given, settings.cut_point)]
    shown = [*images_shown(given, **chosen)]
    maps = np.stack([read_maps(given, point, each.image) for each in shown])
    height, width = maps.shape[2:]
    found = components_of(maps, settings)
    facts = {"model": given.model, "of": point.name, "height": height, "width": width}
    rows: list[dict[str, Any]] = []
    for number, each in enumerate(shown):
        of_image = {name: values[number] for name, values in found.items()}
        shares = {name: float(of_image[name].mean()) for name in ("foreground", "outliers")}
        subject = on_subject(of_image["foreground"], given.images.mask(each.row), height, width)
        of_image |= {"image": each.row, "picture": each.picture, **shares, **subject}
        rows.append({**facts, **of_image})
    return pd.DataFrame(rows)
