"""Predict the class of each image, and check whether predictions can be relied upon."""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from functools import partial
from itertools import chain
from math import inf, log, sqrt
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from scipy.special import rel_entr
from torch import Tensor, nn
from torch.nn.functional import one_hot
from torch.nn.modules.batchnorm import _BatchNorm

from vitscope.data.split import Split
from vitscope.errors import VitscopeError, first_of, quoted, visible
from vitscope.image_size import height_and_width
from vitscope.networks.building.networks import same_bytes, tensors_of
from vitscope.progress import Say

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


Integers = npt.NDArray[np.int64]

# The largest probability of a false alarm in each of two checks: for an accuracy at the level of
# chance, and for swapped classes.
RISK = 0.01
# A useful network has more than this skill; 1 is perfect.
SMALL_SKILL = 0.25
# A class is hardly ever found if another class is predicted for its images this many times
# as often.
HARDLY = 10
SHOWN_CLASSES = 5


def doubts_about_predictions(
    labels: Integers, predictions: Integers, names: Sequence[str]
) -> list[str]:
    """Return sentences on why labels and outputs may not be in the same order."""
    found = []
    if is_chance(labels, predictions, len(names)):
        right, images = int((labels == predictions).sum()), len(labels)
        found.append(
            f"it is right about {right} of {images} images ({100 * right / images:.1f} %), which "
            f"is no better than chance, {100 * chance(labels, predictions):.1f} %"
        )
    if taken := find_swapped_predictions(labels, predictions, len(names)):
        found.append("; ".join(_swapped_predictions_in_words(taken, names)))
    return found


def prediction_skill(labels: Integers, predictions: Integers, classes: int) -> tuple[float, float]:
    """Return the skill (0 for chance, 1 for perfect) and an upper bound of it.

    If only one class occurs, they are NaN and infinity.
    """
    shares = np.bincount(labels, minlength=classes) / len(labels)
    there = shares[shares > 0]
    if len(there) < 2:
        return np.nan, inf
    scores = (labels == predictions) - shares[predictions]
    perfect = 1 - float(np.square(shares).sum())
    span = 1 + float(there.max() - there.min())
    margin = span * sqrt(log(1 / RISK) / (2 * len(labels)))
    mean = float(scores.mean())
    return mean / perfect, (mean + margin) / perfect


def is_chance(labels: Integers, predictions: Integers, classes: int) -> bool:
    _, bound = prediction_skill(labels, predictions, classes)
    accuracy = float((labels == predictions).mean())
    by_chance = chance(labels, predictions)
    return bound < SMALL_SKILL and not is_surely_above(accuracy, by_chance, len(labels), RISK)


def chance(labels: Integers, predictions: Integers) -> float:
    """Return the expected accuracy if the same predictions were assigned to images at random."""
    classes = 1 + max(labels.max(), predictions.max())
    shares = (np.bincount(each, minlength=classes) / len(each) for each in (labels, predictions))
    return float(np.dot(*shares))


def is_surely_above(share: float, expected: float, count: int, risk: float) -> bool:
    """Tell whether a share of `count` images is above `expected` at significance level `risk`."""
    if share <= expected:
        return False
    divergence = float(rel_entr(share, expected) + rel_entr(1 - share, 1 - expected))
    return count * divergence > log(1 / risk)


class Confusion(NamedTuple):
    """Counts the images of a class: all, those predicted `right`, and those `named` as `other`."""

    label: int
    images: int
    right: int
    other: int
    named: int


def find_swapped_predictions(
    labels: Integers, predictions: Integers, classes: int
) -> list[Confusion]:
    outdone = {each.label: each for each in _find_rival_predictions(labels, predictions, classes)}
    return [
        each
        for each in outdone.values()
        if HARDLY * each.right <= each.named or each.other in outdone
    ]


def _find_rival_predictions(
    labels: Integers, predictions: Integers, classes: int
) -> Iterator[Confusion]:
    """Yield classes for whose images one other class is predicted significantly more often."""
    present = np.unique(labels)
    risk = RISK / (len(present) * (classes - 1))
    for label in present.tolist():
        named = np.bincount(predictions[labels == label], minlength=classes)
        images, right = int(named.sum()), int(named[label])
        named[label] = -1
        other = int(named.argmax())
        either = right + int(named[other])
        if either and is_surely_above(int(named[other]) / either, 0.5, either, risk):
            yield Confusion(label, images, right, other, int(named[other]))


def _swapped_predictions_in_words(
    taken: Sequence[Confusion], names: Sequence[str]
) -> Iterator[str]:
    ordered = sorted(taken, key=lambda each: each.right - each.named)
    for each in ordered[:SHOWN_CLASSES]:
        yield visible(
            f"of {each.images} images of class {each.label} ({names[each.label]}) it is right "
            f"about {each.right}, and takes {each.named} for class {each.other} "
            f"({names[each.other]})"
        )
    if len(ordered) > SHOWN_CLASSES:
        yield f"so it is with {len(ordered) - SHOWN_CLASSES} classes more"


def warn_about_predictions(
    model: str, images: Split, predictions: pd.DataFrame, say: Say = print
) -> list[str]:
    where, columns = images.metadata, ("label", "prediction")
    labels, found = (predictions[name].to_numpy(np.int64) for name in columns)
    warnings = [
        f"{model} on the split '{where['split']}' of data.{where['dataset']}: {doubt}: compare the "
        f"numbers of the classes, which the record of the run has, with the order of the outputs "
        f"of the network (`class_names` and `class_index` of the data set), its checkpoint, and "
        f"`mean` and `std`."
        for doubt in doubts_about_predictions(labels, found, images.classes)
    ]
    for warning in warnings:
        say(f"vitscope: warning: {warning}")
    return warnings
