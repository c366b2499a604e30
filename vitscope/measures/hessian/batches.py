"""The Hessian of the loss on each of some batches of augmented images."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pandas as pd
import torch
from torch import nn

from vitscope.measures.hessian import operator
from vitscope.measures.hessian.operator import Hessian
from vitscope.progress import Progress, Say
from vitscope.training.augmented import Augmented

# Before anything is measured, the Hessian is checked on this many images. A few are enough: what
# the check finds is a property of the model, not of the images.
CHECKED = 8


@dataclass(frozen=True)
class Loss:
    """The loss whose Hessian is measured: of a model on batches of images, with weight decay."""

    model: nn.Module
    images: Augmented
    batch_size: int
    weight_decay: float
    device: torch.device | None = None

    def hessian(self, batch: int, images: int | None = None) -> Hessian:
        """Return the Hessian on a batch, or on its first `images` images."""
        first = batch * self.batch_size
        pixels, targets = self.images.rows(first, first + (images or self.batch_size))
        return operator.of_model(
            self.model.to(self.device),
            pixels.to(self.device),
            targets.to(self.device),
            self.weight_decay,
        )


def over_batches(
    loss: Loss, batches: Sequence[int], measure: Callable[[int, Hessian], pd.DataFrame], say: Say
) -> pd.DataFrame:
    """Return what `measure` makes of the Hessian on each batch, after checking the Hessian."""
    checked = min(CHECKED, loss.batch_size)
    operator.require_deterministic(lambda: loss.hessian(batches[0], checked))
    progress = Progress(len(batches), "batches", say)
    tables = []
    for batch in batches:
        tables.append(measure(batch, loss.hessian(batch)))
        progress.advance()
    return pd.concat(tables, ignore_index=True)
