from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from vitscope.measures.directions import moving_weights
from vitscope.measures.given import OnLoss
from vitscope.measures.hessian_operator import (
    CHECKED,
    hessian_of_model,
    require_deterministic_hessian,
)
from vitscope.measures.lanczos import lanczos_quadrature
from vitscope.networks.running.cuda_graphs import own_device_stream
from vitscope.progress import Progress
from vitscope.training.batches import draw_clean_batches
from vitscope.training.recipe import training_rows
from vitscope.training.steps import decays, trained_parameters

# A row of the columns `l2`, `of`, `x` and `value`. `l2` says whether the loss has the L2 term, and
# `of` is "slice" or "spectrum".
Row = tuple[bool, str, float, float]


def loss_terms_along_direction(
    network: nn.Module,
    images: Tensor,
    targets: Tensor,
    decay: float,
    seed: int,
    at: Sequence[float],
) -> Iterator[Row]:
    """Yield the loss, without and with L2, at the steps `at` along the seed's first direction."""
    trained = trained_parameters(network).items()
    decaying = [each.detach() for name, each in trained if decays(name, each)]
    with moving_weights(network, seed) as move:
        for x in at:
            move(x, 0)
            with torch.inference_mode():
                nll = float(cross_entropy(network(images).double(), targets.double()))
            yield False, "slice", x, nll
            squares = sum(float(each.double().square().sum()) for each in decaying)
            yield True, "slice", x, nll + decay / 2 * squares


def loss_term_spectra(
    network: nn.Module, images: Tensor, targets: Tensor, decay: float, batch: int, steps: int
) -> Iterator[Row]:
    """Yield nodes and weights of the spectrum of the Hessian, without L2 and with it."""
    for l2 in (False, True):
        hessian = hessian_of_model(network, images, targets, l2 * decay)
        for node, weight in zip(
            *lanczos_quadrature(hessian, hessian.start(batch), steps), strict=True
        ):
            yield l2, "spectrum", node, weight


def measure_loss_terms(
    given: OnLoss,
    batches: Sequence[int],
    batch_size: int,
    weight_decay: float,
    points: int,
    radius: float,
    seed: int,
    steps: int,
    drawing: Mapping[str, Any],
) -> pd.DataFrame:
    """Return the slice and the spectrum of each batch, on augmented and on clean images."""
    split, network, how = given.drawn_from, given.network.eval().to(given.device), dict(drawing)
    assert split, "clean images are those that were augmented"
    rows = training_rows(split, how.pop("recipe"))
    batched = zip(*draw_clean_batches(split, rows, len(given.images), **how), strict=True)
    clean = [torch.cat(each) for each in batched]
    at = np.linspace(-radius, radius, points).tolist()
    progress, tables = Progress(2 * len(batches), "batches", given.say), []
    with own_device_stream(given.device):
        checked = given.images.batch(0, min(CHECKED, batch_size), batch_size)
        first = [each.to(given.device) for each in checked]
        require_deterministic_hessian(
            lambda: hessian_of_model(network, first[0], first[1], weight_decay)
        )
        for batch in batches:
            chosen = slice(batch * batch_size, (batch + 1) * batch_size)
            drawn = {
                False: given.images.batch(batch, batch_size, batch_size),
                True: [each[chosen] for each in clean],
            }
            for is_clean, pair in drawn.items():
                images, targets = (each.to(given.device) for each in pair)
                on = network, images, targets, weight_decay
                found = [
                    *loss_terms_along_direction(*on, seed, at),
                    *loss_term_spectra(*on, batch, steps),
                ]
                table = pd.DataFrame(found, columns=["l2", "of", "x", "value"])
                tables.append(table.assign(batch=batch, clean=is_clean))
                progress.advance()
    return pd.concat(tables, ignore_index=True).assign(weight_decay=weight_decay)
