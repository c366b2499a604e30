"""Claims about the eigenvalues of the Hessian: how many are negative, how large the others are.

The points are eigenvalues with a weight. The weight of a measured eigenvalue is 1; the weight of an
eigenvalue on a published density is the area under the curve near it. The paper shows these
eigenvalues in Fig. 1c, 4, 6, 7 and 12c.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd

from vitscope.claims.claim import (
    OTHER_MIXING,
    SPECIFIC,
    Claim,
    Evidence,
    attending,
    attention_against_convolution,
    attention_against_fixed_weights,
    global_against_local,
    less_against_more_data,
    small_against_large_patches,
    token_against_mean,
)
from vitscope.claims.points import Points
from vitscope.claims.statistics import Found, Statistic, compare_means, value_of
from vitscope.files.arrays import Array
from vitscope.measures.per_image import ratio

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
PAIRED = (
    "The interval is Student's over batches, from jackknife values of each; batches with the same "
    "number are paired, and with fewer than 20 it is open."
)


def _published_eigenvalues(points: pd.DataFrame) -> pd.DataFrame:
    panels = [panel.sort_values("eigenvalue") for _, panel in points.groupby("panel")]
    weights = [panel["density"] * np.gradient(panel["eigenvalue"]) for panel in panels]
    return pd.concat(panels)[["eigenvalue"]].assign(weight=pd.concat(weights))


def _terms_of_negative_share(points: pd.DataFrame) -> pd.DataFrame:
    """Return each eigenvalue's terms in two sums, whose ratio is the share that is negative."""
    weight = points["weight"]
    return pd.DataFrame({"upper": weight.where(points["eigenvalue"] < 0, 0.0), "lower": weight})


def _terms_of_positive_decades(points: pd.DataFrame) -> pd.DataFrame:
    """Return each eigenvalue's terms in two sums, whose ratio is a mean base-10 logarithm.

    The mean is over positive eigenvalues. The terms of a positive eigenvalue are its weight times
    its logarithm, and its weight; both terms of the others are 0.
    """
    positive = points["eigenvalue"].where(points["eigenvalue"] > 0)
    weight = points["weight"].where(positive.notna(), 0.0)
    return pd.DataFrame({"upper": (weight * np.log10(positive)).fillna(0.0), "lower": weight})


def _ratios_of_sums(means: Array) -> Array:
    return ratio(*means.T)


def _sums_by_batch(terms: pd.DataFrame, points: Points) -> Array:
    """Sum the terms over each batch or, for a published density, over all rows."""
    batch = points.frame["batch"] if "batch" in points else np.zeros(len(terms))
    return terms.groupby(batch).sum().to_numpy()


def _compare_eigenvalue_ratios(
    terms: Callable[[pd.DataFrame], pd.DataFrame], ours: Points, theirs: Points
) -> Found | None:
    sums = [_sums_by_batch(terms(points.frame), points) for points in (ours, theirs)]
    found = compare_means(_ratios_of_sums, *sums)
    measured = "batch" in ours and "batch" in theirs
    return found if found is None or measured else replace(found, batches=None)


def _share_proved_negative(points: Points) -> Found | None:
    """Find the share of eigenvalues proved negative; for a density, the share of area below 0."""
    frame = points.frame
    if "batch" not in points:
        return value_of(_ratios_of_sums(_sums_by_batch(_terms_of_negative_share(frame), points)))
    # The error of an eigenvalue is at most its residual times the largest magnitude of the batch.
    largest = frame["eigenvalue"].abs().groupby(frame["batch"]).transform("max")
    proved = frame["eigenvalue"] + frame["residual"] * largest < 0
    count, total = int(proved.sum()), len(proved)
    return Found(np.array([count / total]), count, total, exact=True)


_HAS_NEGATIVE = Statistic(
    "share of eigenvalues",
    "An eigenvalue, of the largest ones by magnitude of every batch, is in favour if it is below "
    "zero by more than its residual: a single one proves the claim. A no says that there is none "
    "among these, and nothing of smaller ones.",
    _share_proved_negative,
    percent=True,
)
_MORE_NEGATIVE = Statistic(
    "difference of the share of eigenvalues",
    "The value is the share of negative ones among the largest eigenvalues by magnitude of every "
    f"batch, of the first model minus that of the second. {PAIRED}",
    lambda ours, theirs: _compare_eigenvalue_ratios(_terms_of_negative_share, ours, theirs),
    percent=True,
)
_SMALLER_POSITIVE = Statistic(
    "difference of mean magnitude in decades",
    "The value is the mean base-10 logarithm of the positive ones among the largest eigenvalues by "
    f"magnitude of every batch, of the second model minus that of the first. {PAIRED}",
    lambda ours, theirs: _compare_eigenvalue_ratios(_terms_of_positive_decades, theirs, ours),
)

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
            attention_against_fixed_weights,
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
    lambda rows, _: rows[["batch", "eigenvalue", "residual"]].assign(weight=1.0),
    _published_eigenvalues,
)


def _log_eigenvalues(points: Points) -> Array:
    wide = points.frame.set_index(["batch", "index"])["eigenvalue"].abs().unstack()
    # Leave out blocks without curvature: the logarithm of 0 is not finite.
    with np.errstate(divide="ignore"):
        decades: Array = np.log10(wide.to_numpy(np.float64))
    return decades[:, np.isfinite(decades).all(axis=0)]


def _compare_spread_over_blocks(ours: Points, theirs: Points) -> Found | None:
    decades = [_log_eigenvalues(points) for points in (ours, theirs)]
    if min(each.shape[1] for each in decades) < 2:
        return None
    return compare_means(lambda means: np.array(np.std(means, axis=-1, ddof=1)), *decades)


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
                "logarithm of it, averaged over batches; that of the model with MSAs minus "
                f"that of the convolutional one. {PAIRED}",
                _compare_spread_over_blocks,
            ),
            "Not in the paper: Zhang et al. 2024 find that the Hessians of blocks of "
            "Transformers have spectra that differ more than those of CNNs, by distances "
            "between densities of eigenvalues.",
        ),
    ),
    lambda rows, _: rows.loc[rows["of"] == "block", ["batch", "index", "eigenvalue"]],
)
