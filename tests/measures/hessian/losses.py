"""A small loss, for tests of what is measured of its Hessian."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import nn

from tests.helpers.augmented import augmented
from tests.measures.hessian.networks import DECAY, batch_of
from vitscope.measures.hessian.batches import Loss


def small_loss(folder: Path) -> Loss:
    """Return the loss of a small network on 40 images in batches of 10."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(12, 8), nn.GELU(), nn.Linear(8, 3))
    images, targets = batch_of((40, 3, 2, 2))
    drawn = augmented(folder / "augmented.safetensors", images.numpy(), targets.numpy())
    return Loss(model, drawn, batch_size=10, weight_decay=DECAY)


def silent(line: str) -> None:
    """Say nothing."""


def require_alike_in_parts(
    measure: Callable[..., pd.DataFrame], loss: Loss, bounds: set[int], **settings: Any
) -> None:
    """Require that parts of four batches, that end at `bounds`, give what the whole gives."""
    whole = measure(loss, range(4), **settings, say=silent)
    edges = [0, *sorted(bounds), 4]
    parts = [measure(loss, range(*part), **settings, say=silent) for part in pairwise(edges)]
    pd.testing.assert_frame_equal(pd.concat(parts, ignore_index=True), whole, check_exact=True)
