from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn import functional

from vitscope.claims.intervals import share_interval
from vitscope.errors import VitscopeError
from vitscope.measures.bootstrap import spread
from vitscope.measures.given import OnModel


def fit_losses(
    model: nn.Module, batches: Iterable[tuple[Tensor, Tensor]], device: torch.device | None = None
) -> npt.NDArray[np.float64]:
    """Return the cross-entropy of each image with its soft targets, in evaluation mode."""
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
            f"The loss of the {type(model).__name__} is not finite on {spoiled} of {len(measured)} "
            "training images: check its checkpoint, and the mean and std of its data."
        )
    return measured.numpy()


def fit_table(
    predictions: pd.DataFrame, losses: npt.NDArray[np.float64], resamples: int, seed: int
) -> pd.DataFrame:
    """Return a row for the error on test images and one for the loss on training images.

    The loss has no interval. Whole batches are mixed by different amounts, which changes the loss
    more than the choice of images does. Since all models see the same mixed batches, this cancels
    in the difference of two models; the resamples are kept for such differences.
    """
    wrong = 100.0 * (predictions["prediction"] != predictions["label"]).to_numpy()
    found = [spread(each[:, None], resamples, seed).columns("value") for each in (wrong, losses)]
    error, loss = (pd.DataFrame(each) for each in found)
    if error["ci_low"].eq(error["ci_high"]).all():
        wilson = share_interval(int(wrong.sum() / 100), len(wrong))
        error[["ci_low", "ci_high"]] = 100 * np.array(wilson)
    loss[["ci_low", "ci_high"]] = np.nan
    return pd.concat([error, loss], ignore_index=True).assign(
        metric=["error_percent", "nll_train"],
        images=[len(wrong), len(losses)],
        value=[wrong.mean(), losses.mean()],
    )


def measure_fit(given: OnModel, resamples: int, seed: int) -> pd.DataFrame:
    assert given.alike
    assert given.predictions is not None
    losses = fit_losses(given.network, given.alike.batches(given.batch_size), given.device)
    table = fit_table(given.predictions, losses, resamples, seed)
    return table.assign(model=given.model)
