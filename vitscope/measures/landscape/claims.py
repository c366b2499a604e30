"""Claims about the training loss: how steep and how curved it is, and how well models fit it."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd

from vitscope.claims.basis import Basis, RowsOf
from vitscope.claims.claim import (
    Claim,
    Finding,
    KindsOf,
    Subject,
    apart,
    attending,
    attention_against_convolution,
    convolutional,
)
from vitscope.measures.intervals import TAILS, Array, bootstrap_means

# The distance from the trained weights at which the paper's landscapes are compared.
_RADIUS = 0.5
# Of the interval over batches; the batches of each of two models are resampled by its own seed.
_RESAMPLES = 2000
_SEEDS = (0, 1)

_LANDSCAPE_RULE = (
    "The paper's Fig. 1a. The curvature is the second difference of the loss, NLL and L2 term, at "
    "the trained weights, over the nearest steps and averaged over both directions; the spread is "
    "the highest minus the lowest NLL at a distance of 0.5, give or take half a step. The value is "
    "that of the convolutional model minus that of the model named first; the claim holds where it "
    "is above zero. The published values are of the authors' own grids of Fig. 1a. There the two "
    "curvatures are almost alike, and of the NLL alone ViT's is the larger (38.7 against 25.2): "
    "the landscapes differ farther from the trained weights. All of it is on one pair of random "
    "directions: a small difference may be another on others."
)
_HESSIAN_RULE = (
    "The paper's Fig. 1c and Fig. 4. Of the largest eigenvalues by magnitude of every batch, at "
    "each moment that the figure shows: the share that is negative; and the mean base-10 logarithm "
    "of those that are positive, of the convolutional model minus that of the model named first. "
    "Claims hold above zero, that of a single model above one in a hundred. A single eigenvalue "
    "may decide: the interval is by bootstrap over batches, and of few batches it is too narrow. "
    "Published shares are areas under the published densities."
)
_FIT_RULE = (
    "The paper's Fig. 5. The value is the training NLL, or the test error in percentage points, of "
    "the model named first, which has no Convs, minus that of the convolutional one; the claim "
    "holds where it is above zero. The 95 % intervals of errors are of each model alone, though "
    "both classify the same images: where they overlap, there may be a difference all the same. "
    "The NLL has no interval: a small difference may be chance."
)


def _value(points: pd.DataFrame, measure: str) -> float | None:
    """Return what was measured, or None where it was not or is not finite."""
    values = points.loc[points["measure"] == measure, "value"]
    return float(values.iloc[0]) if len(values) and np.isfinite(values.iloc[0]) else None


def _excess(more: float | None, less: float | None) -> Finding | None:
    return None if more is None or less is None else Finding(more - less)


def larger(measure: str) -> Callable[[pd.DataFrame, pd.DataFrame], Finding | None]:
    """Return how to find by how much a measure of the first model is the larger."""
    return lambda ours, theirs: _excess(_value(ours, measure), _value(theirs, measure))


def smaller(measure: str) -> Callable[[pd.DataFrame, pd.DataFrame], Finding | None]:
    """Return how to find by how much a measure of the first model is the smaller."""
    return lambda ours, theirs: _excess(_value(theirs, measure), _value(ours, measure))


def _measures(**values: float) -> pd.DataFrame:
    return pd.DataFrame({"measure": list(values), "value": list(values.values())})


# Landscapes


def _distances(grid: pd.DataFrame) -> tuple[pd.Series, float]:
    """Return how far the points of a grid are from its middle, and its step."""
    distance = np.sqrt(np.square(grid["x"]) + np.square(grid["y"]))
    return distance, float(distance[distance > 0].min())


def curvature(grid: pd.DataFrame) -> float:
    """Return the mean second difference of the loss at the middle of a grid; NaN if undefined."""
    distance, step = _distances(grid)
    middle = grid.loc[distance == 0, "loss"].iloc[0]
    around = grid.loc[np.isclose(distance, step), "loss"]
    # Both directions have two of these neighbours each.
    return float((around - middle).sum(skipna=False) / (2 * step**2))


def spread(grid: pd.DataFrame) -> float:
    """Return the range of the NLL about the distance `_RADIUS`; NaN if not all of it is finite."""
    distance, step = _distances(grid)
    # Points that lie on the border count, however their distance is rounded.
    ring = grid.loc[(distance - _RADIUS).abs() <= step / 2 * (1 + 1e-6), "nll"]
    return float(ring.max(skipna=False) - ring.min(skipna=False)) if len(ring) else np.nan


def _landscape(rows: RowsOf) -> pd.DataFrame:
    grid = rows("landscape")
    return _measures(curvature=curvature(grid), nll_spread=spread(grid))


# Hessians


def _hessian(rows: RowsOf) -> pd.DataFrame:
    return rows("hessian")[["batch", "eigenvalue"]].assign(weight=1.0)


def _published_hessian(points: pd.DataFrame) -> pd.DataFrame:
    """Weigh each point of a published density by its part of the area below it."""
    panels = [panel.sort_values("eigenvalue") for _, panel in points.groupby("panel")]
    weights = [panel["density"] * np.gradient(panel["eigenvalue"]) for panel in panels]
    return pd.concat(panels)[["eigenvalue"]].assign(weight=pd.concat(weights))


# What a spectrum is summed to, of which the ratio is a measure: a row for each eigenvalue.
Parts = Callable[[pd.DataFrame], pd.DataFrame]


def _negatives(points: pd.DataFrame) -> pd.DataFrame:
    """Sum up to the share of eigenvalues that are negative."""
    weight = points["weight"]
    return pd.DataFrame({"part": weight.where(points["eigenvalue"] < 0, 0.0), "whole": weight})


def _decades(points: pd.DataFrame) -> pd.DataFrame:
    """Sum up to the mean logarithm of those that are positive."""
    positive = points["eigenvalue"].where(points["eigenvalue"] > 0)
    weight = points["weight"].where(positive.notna(), 0.0)
    return pd.DataFrame({"part": (weight * np.log10(positive)).fillna(0.0), "whole": weight})


def _ratio(parts: pd.DataFrame) -> float | None:
    part, whole = parts.sum()
    return float(part / whole) if whole else None


def _counts(points: pd.DataFrame) -> tuple[int, int]:
    part, whole = _negatives(points).sum()
    return round(part), round(whole)


def _interval(parts: Parts, *spectra: pd.DataFrame) -> tuple[float, float] | None:
    """Return the 95 % interval of a ratio, or of one minus another, by bootstrap over batches.

    There is none of a published density, of a single batch, or where a resample has no ratio.
    """
    if not all("batch" in points and points["batch"].nunique() > 1 for points in spectra):
        return None
    ratios = [_resampled(parts, *each) for each in zip(spectra, _SEEDS, strict=False)]
    values = ratios[0] if len(ratios) == 1 else ratios[0] - ratios[1]
    low, high = np.percentile(values, TAILS)
    return (float(low), float(high)) if np.isfinite(values).all() else None


def _resampled(parts: Parts, points: pd.DataFrame, seed: int) -> Array:
    batches = parts(points).groupby(points["batch"]).sum()
    part, whole = bootstrap_means(batches.to_numpy(), _RESAMPLES, seed).T
    ratios: Array = np.divide(part, whole, out=np.full_like(part, np.nan), where=whole > 0)
    return ratios


def _excess_of(parts: Parts, more: pd.DataFrame, less: pd.DataFrame) -> Finding | None:
    found = _excess(_ratio(parts(more)), _ratio(parts(less)))
    return found and replace(found, interval=_interval(parts, more, less))


def has_negative(points: pd.DataFrame) -> Finding | None:
    """Find the share of negative eigenvalues; those of a published density have no number."""
    share = _ratio(_negatives(points))
    if share is None or "batch" not in points:
        return None if share is None else Finding(share)
    return Finding(share, *_counts(points), interval=_interval(_negatives, points))


def more_negative(ours: pd.DataFrame, theirs: pd.DataFrame) -> Finding | None:
    """Find by how much the share of negative eigenvalues of the first model is the larger."""
    found = _excess_of(_negatives, ours, theirs)
    if found is None or not all("batch" in points for points in (ours, theirs)):
        return found
    count, total = _counts(ours)
    return replace(found, count=count, total=total, versus=_counts(theirs))


def smaller_positive(ours: pd.DataFrame, theirs: pd.DataFrame) -> Finding | None:
    """Find by how many decades positive eigenvalues of the first model are the smaller ones."""
    return _excess_of(_decades, theirs, ours)


# Fit


def _fit(rows: RowsOf) -> pd.DataFrame:
    return rows("fit").rename(columns={"metric": "measure"})


def errs_more(ours: pd.DataFrame, theirs: pd.DataFrame) -> Finding | None:
    """Find by how much the error of the first model is the larger."""
    errors = (points[points["measure"] == "error_percent"] for points in (ours, theirs))
    found = larger("error_percent")(ours, theirs)
    return found and replace(found, apart=apart(*errors))


def without_against_convolution(kinds_of: KindsOf) -> list[Subject]:
    """Pair each model that has no Convs with each convolutional one."""
    without = [model for model, kinds in kinds_of.items() if "conv" not in kinds]
    return [(model, *other) for model in without for other in convolutional(kinds_of)]


LANDSCAPE = Basis(
    "landscape",
    (
        Claim(
            "msa_flattens_loss_at_minimum",
            "The loss of MSAs is less curved at the trained weights than that of Convs",
            "Fig. 1a",
            "difference of curvature",
            _LANDSCAPE_RULE,
            attention_against_convolution,
            smaller("curvature"),
            holds_above=0,
        ),
        Claim(
            "msa_flattens_loss",
            "The loss of MSAs varies less around the trained weights than that of Convs",
            "Fig. 1a",
            "difference of the spread of the NLL",
            _LANDSCAPE_RULE,
            attention_against_convolution,
            smaller("nll_spread"),
            holds_above=0,
        ),
    ),
    _landscape,
)
HESSIAN = Basis(
    "hessian",
    (
        Claim(
            "msa_has_negative_eigenvalues",
            "The Hessian of MSAs has negative eigenvalues",
            "Fig. 4",
            "share of eigenvalues",
            _HESSIAN_RULE,
            attending,
            has_negative,
            holds_above=0.01,
        ),
        Claim(
            "msa_has_more_negative_eigenvalues",
            "The Hessian of MSAs has more negative eigenvalues than that of Convs",
            "Fig. 4",
            "difference of the share of eigenvalues",
            _HESSIAN_RULE,
            attention_against_convolution,
            more_negative,
            holds_above=0,
        ),
        Claim(
            "msa_has_smaller_positive_eigenvalues",
            "Positive eigenvalues of the Hessian of MSAs are smaller than those of Convs",
            "Fig. 1c, Fig. 4",
            "difference of mean magnitude in decades",
            _HESSIAN_RULE,
            attention_against_convolution,
            smaller_positive,
            holds_above=0,
        ),
    ),
    _hessian,
    _published_hessian,
)
FIT = Basis(
    "fit",
    (
        Claim(
            "weak_bias_fits_worse",
            "A model of weaker inductive bias has the higher training loss",
            "Fig. 5",
            "difference of training NLL",
            _FIT_RULE,
            without_against_convolution,
            larger("nll_train"),
            holds_above=0,
        ),
        Claim(
            "weak_bias_errs_more",
            "A model of weaker inductive bias has the higher test error",
            "Fig. 5",
            "difference of test error",
            _FIT_RULE,
            without_against_convolution,
            errs_more,
            holds_above=0,
        ),
    ),
    _fit,
    lambda points: points.rename(columns={"metric": "measure"}),
)
