"""What becomes of the class of an image while pixels that a map names are deleted, or inserted."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy.ndimage import gaussian_filter
from torch import Tensor
from torch.nn.functional import interpolate

from vitscope.files.arrays import Array
from vitscope.measures.class_maps.compute import Explainer
from vitscope.measures.columns import RESAMPLED
from vitscope.measures.given import OnModel
from vitscope.measures.per_image import spread
from vitscope.measures.shown import images_shown
from vitscope.networks.running.predictions import decide_among

# From a method and a change to the probabilities of an image after every step, (steps + 1,).
Curves = dict[tuple[str, str], Array]


def order_pixels(values: Tensor, image: Tensor, among_equals: Array) -> Array:
    """Return the pixels (H * W,) of an image, first those where a map (h, w) is largest.

    Pixels with equal values stand in the order of `among_equals`, (H * W,).
    """
    resized = interpolate(values.double()[None, None], image.shape[-2:], mode="bilinear")
    return np.lexsort((among_equals, -resized.flatten().cpu().numpy()))


def change_pixels(before: Tensor, after: Tensor, order: Array, steps: int) -> Tensor:
    """Return views (steps + 1, C, H, W) of which each has more pixels of `after`, in their order.

    Of a share of a pixel nothing is changed; the first view is `before`, the last `after`.
    """
    rank = torch.empty(len(order), dtype=torch.int64)
    rank[torch.from_numpy(order)] = torch.arange(len(order))
    changed = rank < (len(order) * torch.arange(steps + 1) // steps)[:, None]
    mask = changed.view(steps + 1, 1, *before.shape[-2:]).to(before.device)
    return torch.where(mask, after, before)


def blur_image(image: Tensor, share: float) -> Tensor:
    """Return an image (1, C, H, W) blurred by so much of its shorter side."""
    sigma = share * min(image.shape[-2:])
    blurred = gaussian_filter(image.cpu().numpy(), (0, 0, sigma, sigma), mode="nearest")
    return torch.from_numpy(blurred).to(image)


class Follower:
    """Follows the class of images, one at a time, through the changes of every method."""

    def __init__(
        self, given: OnModel, explained: Mapping[str, Any], steps: int, blur: float, seed: int
    ) -> None:
        self._given, self._explainer = given, Explainer(given, **explained)
        self._steps, self._blur, self._seed = steps, blur, seed

    def follow(self, row: int, image: Tensor) -> Curves:
        """Return the curves of an image, which the network takes from a row of its split."""
        _, number, maps = self._explainer.explain(image)
        generator = np.random.default_rng([self._seed, row])
        among_equals = generator.random(image[0, 0].numel())
        values = {each.method: each.values for each in maps}
        values["random"] = torch.from_numpy(generator.random(values["grad_cam"].shape))
        black, blurred = torch.zeros_like(image), blur_image(image, self._blur)
        curves = {}
        for method, of_method in values.items():
            order = order_pixels(of_method, image, among_equals)
            for change, ends in {"deleted": (image, black), "inserted": (blurred, image)}.items():
                views = change_pixels(*ends, order, self._steps)
                curves[method, change] = np.concatenate([*self._probabilities(views, number)])
        return curves

    @torch.inference_mode()
    def _probabilities(self, views: Tensor, number: int) -> Iterator[Array]:
        for batch in torch.split(views, self._given.batch_size):
            logits = decide_among(self._given.network(batch), self._given.images.outputs)
            yield logits.double().softmax(1)[:, number].cpu().numpy()


def faithfulness_table(
    model: str, curves: Mapping[tuple[str, str], Array], bootstrap: Mapping[str, int]
) -> pd.DataFrame:
    """Return the table of a model from the curves of all images, each (N, steps + 1)."""
    tables = []
    for (method, change), found in curves.items():
        shares = np.linspace(0, 1, found.shape[1])
        areas = np.trapezoid(found, shares, axis=1)[:, None]
        ends = spread(np.hstack([found, areas]), **bootstrap)
        columns = {
            "model": model,
            "method": method,
            "change": change,
            "share": shares,
            "images": len(found),
            "probability": found.mean(axis=0),
            "ci_low": ends.low[:-1],
            "ci_high": ends.high[:-1],
            "area": areas.mean(),
            "area_low": ends.low[-1],
            "area_high": ends.high[-1],
            f"area{RESAMPLED}": [ends.kept(-1)] * len(shares),
        }
        tables.append(pd.DataFrame(columns))
    return pd.concat(tables, ignore_index=True)


def measure_faithfulness(
    given: OnModel,
    explained: Mapping[str, Any],
    chosen: Mapping[str, Any],
    changed: Mapping[str, Any],
    bootstrap: Mapping[str, int],
) -> pd.DataFrame:
    """Return how faithful the maps of the `chosen` images are, by every method."""
    follower = Follower(given, explained, **changed)
    found = [follower.follow(row, image) for row, _, image in images_shown(given, **chosen)]
    curves = {key: np.stack([of_image[key] for of_image in found]) for key in found[-1]}
    return faithfulness_table(given.model, curves, bootstrap)
