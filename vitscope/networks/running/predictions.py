"""Predict the class of each image, and check whether predictions can be relied upon."""

import random
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from functools import partial
from itertools import chain
from math import log, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot
from torch.nn.modules.batchnorm import _BatchNorm

from vitscope.errors import VitscopeError, first_of, quoted
from vitscope.image_size import height_and_width
from vitscope.networks.building.networks import same_bytes, tensors_of

TOP = 5
# These columns need the label of an image, and are null where it is unknown.
BY_LABEL = ("label", "nll", "brier", "top5")


def score_predictions(logits: Tensor, labels: Tensor) -> dict[str, Tensor]:
    """Return the columns of a predictions table from (N, classes) logits and labels."""
    log_probability = logits.double().log_softmax(1)
    probability = log_probability.exp()
    of_label = labels[:, None]
    error = probability - one_hot(labels, logits.shape[1])
    # Do not count ties, so that a tie pushes no label out of the top.
    more_probable = (logits > logits.gather(1, of_label)).sum(1)
    return {
        "label": labels,
        "prediction": logits.argmax(1),
        "confidence": probability.amax(1),
        "nll": -log_probability.gather(1, of_label)[:, 0],
        "brier": error.square().sum(1),
        "top5": more_probable < TOP,
    }


def predict_among(logits: Tensor, outputs: Sequence[Sequence[int]] | None) -> Tensor:
    """Return the log mean probability of each class's `outputs`; without them, return `logits`."""
    if outputs is None:
        return logits
    log_probability = logits.double().log_softmax(1)
    # Take means, as Geirhos et al. (2019) do, so that a class gains nothing from many outputs.
    means = [log_probability[:, [*each]].logsumexp(1) - log(len(each)) for each in outputs]
    return torch.stack(means, dim=1)


def predict(
    model: nn.Module,
    batches: Iterable[Tensor],
    labels: npt.NDArray[np.int64],
    device: torch.device | None = None,
    outputs: Sequence[Sequence[int]] | None = None,
    finite: bool = True,
) -> pd.DataFrame:
    """Classify all images of `batches`, and return a row of scores for each.

    If `finite`, refuse logits that are not.
    """
    model = model.eval().to(device)
    scores: list[pd.DataFrame] = []
    first = 0
    with torch.inference_mode():
        for batch in batches:
            logits = model(batch.to(device)).cpu()
            if finite:
                _check_finite_logits(model, logits, first)
            truth = torch.from_numpy(labels[first : first + len(batch)])
            columns = score_predictions(predict_among(logits, outputs), truth.clamp_min(0))
            found = pd.DataFrame({key: value.numpy() for key, value in columns.items()})
            unknown = truth.numpy() < 0
            if unknown.any():
                by_label = {n: found[n].astype(object).mask(unknown, None) for n in BY_LABEL}
                found = found.assign(**by_label)
            scores.append(found)
            first += len(batch)
    if first != len(labels):
        raise ValueError(f"got {first} images, expected {len(labels)}")
    if not scores:
        raise VitscopeError("There is no image to classify: select at least one.")
    return pd.concat(scores, ignore_index=True)


def _check_finite_logits(model: nn.Module, logits: Tensor, first: int) -> None:
    spoiled = int((~logits.isfinite()).any(1).sum())
    if spoiled:
        raise VitscopeError(
            f"The {type(model).__name__} gives logits that are not finite for {spoiled} of the "
            f"images {first} to {first + len(logits) - 1} of those classified: check its "
            f"checkpoint, and the mean and std of its data."
        )


SHOWN_NORMS = 3
# Tolerate this many times the rounding error of the largest value: a GPU may add in any order.
ROUNDINGS = 64
# Compare this many more passes of a network that draws random numbers in evaluation.
DRAWS = 24


def refuse_unrepeatable_predictions(
    network: nn.Module, settings: Mapping[str, Any], device: torch.device
) -> None:
    shape = (1, len(settings["mean"]), *height_and_width(settings["image_size"]))
    image = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    if why := why_predictions_differ(network.eval().to(device), image.to(device)):
        raise VitscopeError(f"The network ({type(network).__name__}): {why}")


@torch.no_grad()
def why_predictions_differ(network: nn.Module, image: Tensor) -> str | None:
    """Return a sentence on why two passes of one image (1, C, H, W) differ; None if they agree."""
    batch, kind = torch.cat([image, image.flip(-1)]), image.device.type
    gpus = [image.device] if kind == "cuda" else []
    buffers = [(name, each, each.clone()) for name, each in network.named_buffers()]
    with torch.random.fork_rng(gpus) if kind in ("cpu", "cuda") else nullcontext():
        drawn = _random_states()
        one, other = network(batch), network(torch.cat([image, -image]))
        # Passes that draw random numbers may agree by chance.
        draws = 0 if _random_states() == drawn else DRAWS
        others = chain([other], (network(batch) for _ in range(draws)))
        if all(_first_predictions_agree(one, each) for each in others):
            return None
        written = [name for name, each, before in buffers if not same_bytes(each, before)]
        later = network(batch)
        for _, each, before in buffers:
            if not same_bytes(each, before):
                each.copy_(before)
        restored = _first_predictions_agree(one, network(batch))
        if written and restored and not _first_predictions_agree(one, later):
            return (
                f"two passes of the same images differ, since each pass changes the buffers "
                f"{first_of(written, SHOWN_NORMS)} in evaluation too: all numbers are of one order "
                f"of passes: switch off what changes them there, as an observer or a moving mean."
            )
        first = _trace_modules(network, batch)
        again = (_trace_modules(network, batch) for _ in range(1 + draws))
        pairs = (pair for trace in again for pair in zip(first, trace, strict=False))
        changed = next((one for one, two in pairs if one != two), None)
    if changed:
        return (
            f"two passes of the same images differ, from the module {quoted(changed[0])} on: noise "
            f"or dropout is active in evaluation, so that all numbers are of one draw: switch it "
            f"off there, or draw it each time from a generator of one seed."
        )
    norms = [
        name
        for name, module in network.named_modules()
        if isinstance(module, _BatchNorm) and module.running_mean is None
    ]
    by = f", by {first_of(norms, SHOWN_NORMS)}, which has no running statistics" if norms else ""
    return (
        f"what the network says of an image depends on the images beside it{by}: all numbers are "
        f"of one size of batches: let it normalize in evaluation by statistics that it keeps."
    )


def _random_states() -> list[object]:
    """Return the states of the generators that a network may draw from."""
    gpus = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    states = [each.tolist() for each in (torch.get_rng_state(), *gpus)]
    numpy = np.random.get_state(legacy=False)  # noqa: NPY002
    return [*states, numpy["state"]["key"].tolist(), numpy["state"]["pos"], random.getstate()]


def _first_predictions_agree(one: Any, other: Any) -> bool:
    """Tell whether what two passes return agrees on the first image, up to rounding."""
    return all(map(_first_tensors_agree, tensors_of(one), tensors_of(other)))


def _first_tensors_agree(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape or one.shape[:1] != (2,):
        return True
    if not one.is_floating_point() or one.numel() == 0:
        return True
    ours, theirs = (each[0].double().nan_to_num() for each in (one, other))
    eps = torch.finfo(one.dtype).eps
    tolerance = min(ROUNDINGS * eps, sqrt(eps))
    return bool(((ours - theirs).abs() <= tolerance * ours.abs().amax()).all())


def _trace_modules(network: nn.Module, batch: Tensor) -> list[tuple[str, float]]:
    """Return the names of leaf modules in the order of their calls, each with its output's sum."""
    called: list[tuple[str, float]] = []

    def note_output(name: str, module: nn.Module, args: Any, output: Any) -> None:
        called.extend((name, float(each.double().sum())) for each in tensors_of(output))

    with ExitStack() as stack:
        for name, module in network.named_modules():
            if not [*module.children()]:
                stack.callback(module.register_forward_hook(partial(note_output, name)).remove)
        network(batch)
    return called
