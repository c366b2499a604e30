"""Error on test images and loss on training images: Fig. 5 and Fig. 7 of the paper.

A model that fits its training data better may be wrong more often: then it overfits. The paper
finds the opposite, that weak inductive bias hinders training and with it the error.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn import functional

from vitscope.claims.chance import share_interval
from vitscope.errors import VitscopeError
from vitscope.measures.given import OnModel
from vitscope.measures.intervals import interval


def training_losses(
    model: nn.Module,
    batches: Iterable[tuple[Tensor, Tensor]],
    device: torch.device | None = None,
) -> npt.NDArray[np.float64]:
    """Return the negative log-likelihood of the soft targets of each image, in evaluation mode."""
    model = model.eval().to(device)
    losses = []
    with torch.inference_mode():
        for images, targets in batches:
            logits = model(images.to(device)).cpu().double()
            losses.append(functional.cross_entropy(logits, targets.double(), reduction="none"))
    if not losses:
        raise VitscopeError("There is no image to measure the loss on: draw at least one.")
    measured = torch.cat(losses)
    spoiled = int((~measured.isfinite()).sum())
    if spoiled:
        raise VitscopeError(
            f"The loss of the {type(model).__name__} is not finite on {spoiled} of "
            f"{len(measured)} training images: check its checkpoint, and the mean and std of its "
            f"data."
        )
    return measured.numpy()


def fit_table(
    predictions: pd.DataFrame, losses: npt.NDArray[np.float64], resamples: int, seed: int
) -> pd.DataFrame:
    """Return a row for the error on test images and one for the loss on training images.

    The loss has no bootstrap interval: its images are not independent, since they are mixed with
    others of their batch. All models see the same ones, so that their losses compare all the same.
    """
    wrong = 100.0 * (predictions["prediction"] != predictions["label"]).to_numpy()
    low, high = interval(wrong[:, None], resamples, seed)[:, 0]
    if low == high:
        low, high = (100 * end for end in share_interval(int(wrong.sum() / 100), len(wrong)))
    rows: list[dict[str, Any]] = [
        {
            "metric": "error_percent",
            "images": len(wrong),
            "value": wrong.mean(),
            "ci_low": low,
            "ci_high": high,
        },
        {"metric": "nll_train", "images": len(losses), "value": losses.mean()},
    ]
    return pd.DataFrame(rows)


def measure(given: OnModel, resamples: int, seed: int) -> pd.DataFrame:
    """Return the error of the predictions, and the loss on augmented training images."""
    if given.alike is None or given.predictions is None:
        raise ValueError("the fit needs predictions and augmented images")
    losses = training_losses(given.network, given.alike.batches(given.batch_size), given.device)
    table = fit_table(given.predictions, losses, resamples, seed)
    return table.assign(model=given.model)
