"""Claims about the eigenvalues of the Hessian: how many are negative, how large the others are.

The points are eigenvalues with a weight. The weight of a measured eigenvalue is 1; the weight of an
eigenvalue on a published density is the area under the curve near it. The paper shows these
eigenvalues in Fig. 1c, 4, 6, 7 and 12c.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import nan

import numpy as np
import pandas as pd

from vitscope.claims.claim import (
    OTHER_MIXING,
    SPECIFIC,
    Claim,
    Evidence,
    attending,
    attention_against_convolution,
    attention_against_other_mixing,
    global_against_local,
    less_against_more_data,
    small_against_large_patches,
    token_against_mean,
)
from vitscope.claims.points import Points
from vitscope.claims.statistics import HALF, Find, Found, Statistic, value_of

_WHY = (
    "The paper's Fig. 1c and Fig. 4, and Fig. 6 and 7, at each snapshot of the figure. Published "
    "shares are areas under the published densities, and are not judged."
)
_WHY_ALIKE = (
    "Two models with MSAs are compared where one has a class token and the other none "
    "(`class_token`), one a window of attention and the other none (`attention_window`), one "
    "smaller patches than the other (`patch_size`), or one less training data than the other "
    f"(`training.images`, with its epochs), and nothing else of them differs. {_WHY}"
)
# How statistics over batches get their interval.
OVER_BATCHES = (
    "The value is the median over batches. Its interval holds whatever the batches are distributed "
    "like: its ends are two of their values, as the sign test has them, so that six batches or "
    "more decide. An interval that ends at zero leaves a claim open."
)
PAIRED = f"Batches with the same number are paired. {OVER_BATCHES}"
_TRAINING_BATCH = (
    "A verdict is about batches as large as those of the training, or the largest ones measured "
    "below that: the statement says of how many images. Where a smaller batch says otherwise, it "
    "says so too."
)


def _published_eigenvalues(points: pd.DataFrame) -> pd.DataFrame:
    panels = [panel.sort_values("eigenvalue") for _, panel in points.groupby("panel")]
    weights = [panel["density"] * np.gradient(panel["eigenvalue"]) for panel in panels]
    return pd.concat(panels)[["eigenvalue"]].assign(weight=pd.concat(weights))


# Returns the value of a batch, from the eigenvalues and weights of its rows.
OfBatch = Callable[[pd.DataFrame], float]


def _negative_share(rows: pd.DataFrame) -> float:
    weight = rows["weight"]
    return float(weight[rows["eigenvalue"] < 0].sum() / weight.sum())


def _positive_decades(rows: pd.DataFrame) -> float:
    """Return the mean base-10 logarithm of positive eigenvalues; NaN if there are none."""
    some = rows[rows["eigenvalue"] > 0]
    weight = some["weight"].sum()
    return float((some["weight"] * np.log10(some["eigenvalue"])).sum() / weight) if weight else nan


def sizes_up_to_training(frames: Sequence[pd.DataFrame]) -> list[int]:
    """Return the batch sizes that all tables of spectra have, in order, that of the verdict last.

    That is the largest one up to the smallest training batch; if there is none, the smallest size.
    """
    sizes = sorted(set.intersection(*({*frame["images"]} for frame in frames)))
    trained = [frame["training_batch"].iloc[0] for frame in frames]
    most = min((each for each in trained if pd.notna(each)), default=None)
    return [size for size in sizes if most is None or size <= most] or sizes[:1]


def _at_training_batch(find: Find, above: float, *points: Points) -> Found | None:
    """Apply `find` to the batches as large as those of training; name smaller ones that differ."""
    if not all("batch" in each for each in points):
        return find(*points)
    found = {
        size: find(*(each.where(each.frame["images"] == size) for each in points))
        for size in sizes_up_to_training([each.frame for each in points])
    }
    *smaller, size = found
    judged = found[size]
    if judged is None:
        return None
    trained = {*(each.frame["training_batch"].iloc[0] for each in points)}
    less = [f"{most}" for most in trained if pd.notna(most) and most != size]
    verdict = judged.verdict(above)
    said = [f"in batches of {size} images" + f" ({' and '.join(less)} in training)" * bool(less)]
    for each, other in ((each, found[each]) for each in smaller):
        if other and (says := other.verdict(above)) != verdict:
            said.append(f"of {each}: {says}")
    return replace(judged, beside=f", {'; '.join(said)}")


def _values_by_batch(points: Points, of_batch: OfBatch) -> pd.Series:
    """Return the value of each batch; of a published density, the value of all its rows."""
    frame = points.frame if "batch" in points else points.frame.assign(batch=0)
    return pd.Series({batch: of_batch(rows) for batch, rows in frame.groupby("batch")})


def compare_by_batch(ours: pd.Series, theirs: pd.Series, measured: bool = True) -> Found | None:
    """Find by how much our values exceed theirs, in the median over batches that both have."""
    differences = (ours - theirs).dropna().to_numpy(np.float64)
    if not len(differences):
        return None
    return value_of(np.median(differences), medians=differences if measured else None)


def _compare_spectra(of_batch: OfBatch, sign: int) -> Find:
    def spectra_compared(*points: Points) -> Found | None:
        ours, theirs = (sign * _values_by_batch(each, of_batch) for each in points)
        return compare_by_batch(ours, theirs, all("batch" in each for each in points))

    return lambda ours, theirs: _at_training_batch(spectra_compared, 0.0, ours, theirs)


def _batches_proved_negative(points: Points) -> Found | None:
    """Count the batches with an eigenvalue proved negative; for a density, the share below 0."""
    frame = points.frame
    if "batch" not in points:
        return value_of(np.array(_negative_share(frame)))
    # The error of an eigenvalue is at most its residual times the largest magnitude of the batch.
    largest = frame["eigenvalue"].abs().groupby(frame["batch"]).transform("max")
    proved = frame["eigenvalue"] + frame["residual"] * largest < 0
    has = proved.groupby(frame["batch"]).any().to_numpy()
    count, total = int(has.sum()), len(has)
    return Found(np.array([count / total]), count, total, medians=has.astype(float))


_HAS_NEGATIVE = Statistic(
    "share of batches",
    "A batch is in favour if one of its largest eigenvalues by magnitude is below zero by more "
    "than its residual. The interval is that of Clopper and Pearson, so that six batches or more "
    f"decide. {_TRAINING_BATCH} A no says that most batches have none among these, and nothing of "
    "smaller eigenvalues.",
    lambda points: _at_training_batch(_batches_proved_negative, HALF, points),
    HALF,
    percent=True,
)
_MORE_NEGATIVE = Statistic(
    "difference of the share of eigenvalues",
    "The value is the share of negative ones among the largest eigenvalues by magnitude of a "
    f"batch, of the first model minus that of the second. {PAIRED} {_TRAINING_BATCH}",
    _compare_spectra(_negative_share, 1),
    percent=True,
)
_SMALLER_POSITIVE = Statistic(
    "difference of mean magnitude in decades",
    "The value is the mean base-10 logarithm of the positive ones among the largest eigenvalues by "
    "magnitude of a batch, of the second model minus that of the first; a batch without any in "
    f"one of them is left out. {PAIRED} {_TRAINING_BATCH}",
    _compare_spectra(_positive_decades, -1),
)

_OF_SPECTRUM = ("images", "training_batch", "batch", "eigenvalue", "residual")

CLAIMS_HESSIAN = Evidence(
    "hessian",
    (
        Claim(
            "msa_has_negative_eigenvalues",
            "The Hessian of MSAs has negative eigenvalues",
            "Fig. 4",
            attending,
            _HAS_NEGATIVE,
            _WHY,
        ),
        Claim(
            "msa_has_more_negative_eigenvalues",
            "The Hessian of MSAs has more negative eigenvalues than that of Convs",
            "Fig. 4",
            attention_against_convolution,
            _MORE_NEGATIVE,
            _WHY,
        ),
        Claim(
            "msa_has_smaller_positive_eigenvalues",
            "Positive eigenvalues of the Hessian of MSAs are smaller than those of Convs",
            "Fig. 1c, Fig. 4",
            attention_against_convolution,
            _SMALLER_POSITIVE,
            _WHY,
        ),
        Claim(
            "specific_weights_have_smaller_positive_eigenvalues",
            f"Positive eigenvalues of the Hessian of MSAs are smaller than those of {OTHER_MIXING}",
            "abstract",
            attention_against_other_mixing,
            _SMALLER_POSITIVE,
            SPECIFIC,
        ),
        Claim(
            "less_data_has_more_negative_eigenvalues",
            "Less training data leaves MSAs with more negative eigenvalues",
            "Fig. 4",
            less_against_more_data,
            _MORE_NEGATIVE,
            _WHY_ALIKE,
        ),
        Claim(
            "class_token_has_more_negative_eigenvalues",
            "A class token leaves more negative eigenvalues than GAP does",
            "Fig. 6",
            token_against_mean,
            _MORE_NEGATIVE,
            _WHY_ALIKE,
        ),
        Claim(
            "global_attention_has_more_negative_eigenvalues",
            "Global attention has more negative eigenvalues than local attention",
            "Fig. 7",
            global_against_local,
            _MORE_NEGATIVE,
            _WHY_ALIKE,
        ),
        Claim(
            "small_patches_have_more_negative_eigenvalues",
            "Smaller patches leave more negative eigenvalues",
            "appendix",
            small_against_large_patches,
            _MORE_NEGATIVE,
            _WHY_ALIKE,
        ),
    ),
    lambda rows, _: rows[[*_OF_SPECTRUM]].assign(weight=1.0),
    _published_eigenvalues,
)


def _spread_by_batch(points: Points) -> pd.Series:
    wide = points.frame.set_index(["batch", "index"])["eigenvalue"].abs().unstack()
    # Leave out blocks without curvature: the logarithm of 0 is not finite.
    curved = wide.loc[:, (wide > 0).all()]
    spread: pd.Series = np.log10(curved).std(axis=1, ddof=1)
    return spread


def _compare_spread_over_blocks(ours: Points, theirs: Points) -> Found | None:
    return compare_by_batch(_spread_by_batch(ours), _spread_by_batch(theirs))


CLAIMS_CURVATURE = Evidence(
    "curvature",
    (
        Claim(
            "msa_has_blocks_of_different_curvature",
            "The curvature of blocks differs more in networks with MSAs than in CNNs",
            "Zhang et al. 2024",
            attention_against_convolution,
            Statistic(
                "difference of the spread over blocks in decades",
                "A block, stem and head among them, stands for its largest eigenvalue by "
                "magnitude: the value is the standard deviation over blocks of the base-10 "
                "logarithm of it in a batch; that of the model with MSAs minus that of the "
                f"convolutional one. {PAIRED}",
                _compare_spread_over_blocks,
            ),
            "Not in the paper: Zhang et al. 2024 find that the Hessians of blocks of "
            "Transformers have spectra that differ more than those of CNNs, by distances "
            "between densities of eigenvalues.",
        ),
    ),
    lambda rows, _: rows.loc[rows["of"] == "block", ["batch", "index", "eigenvalue"]],
)
