"""How well measured curves agree with published ones of the same checkpoints."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from vitscope.claims.claim import Curve, Evidence
from vitscope.claims.counting import Tables, measured_points
from vitscope.claims.published import Published
from vitscope.claims.tables import AGREEMENT
from vitscope.files.arrays import Array


def score_agreement(
    figure: str, evidence: Evidence, tables: Tables, published: Mapping[str, Published]
) -> pd.DataFrame:
    """Score the curves of one figure against the published ones of the same checkpoints."""
    rows = []
    for model, curve in published.items():
        if not (curve.same_model and evidence.curve):
            continue
        ours, theirs = measured_points(evidence, tables, model), evidence.published(curve.points)
        correlation, rmse = _score(ours, theirs, evidence.curve)
        rows.append(
            {
                "figure": figure,
                "model": model,
                "published_series": curve.series,
                "published_points": len(theirs),
                "measured_points": len(ours),
                "rank_correlation": correlation,
                "normalized_rmse": rmse,
            }
        )
    return pd.DataFrame(rows, columns=list(AGREEMENT.columns))


def _score(
    ours: pd.DataFrame, theirs: pd.DataFrame, curve: Curve
) -> tuple[float | None, float | None]:
    """Return rank correlation and normalized error; None where a constant curve has none."""
    found, wanted = _interpolated(ours, theirs, curve), theirs[curve.y].to_numpy()
    span = np.ptp(wanted)
    if span == 0 or not np.isfinite(found).all():
        return None, None
    rmse = float(np.sqrt(np.mean((found - wanted) ** 2)) / span)
    if np.ptp(found) == 0:
        return None, rmse
    return float(spearmanr(found, wanted).statistic), rmse


def _at(x: pd.Series, ours: pd.DataFrame, curve: Curve) -> Array:
    """Return our curve, interpolated at some depths or frequencies; NaN outside its ends."""
    if ours.empty:
        return np.full(len(x), np.nan)
    # Published depths have six decimals. Where both curves have a point, its very value is wanted:
    # one interpolated beside it would break ties between ranks.
    ends = {"left": np.nan, "right": np.nan}
    found: Array = np.interp(x.round(6), ours[curve.x].round(6), ours[curve.y], **ends)
    return found


def _interpolated(ours: pd.DataFrame, theirs: pd.DataFrame, curve: Curve) -> Array:
    """Return our value for each of their points, from our curve of the same cut point."""
    if curve.by is None:
        return _at(theirs[curve.x], ours, curve)
    found = np.full(len(theirs), np.nan)
    for key, where in theirs.reset_index(drop=True).groupby(curve.by).indices.items():
        found[where] = _at(theirs[curve.x].iloc[where], ours[ours[curve.by] == key], curve)
    return found
