"""How well measured curves agree with published curves of the same checkpoints.

Each score stands beside the scores of a straight line and of another network's curve: curves that
all rise agree well, which says nothing about a checkpoint.
"""

from collections.abc import Hashable, Iterable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from vitscope.claims.claim import Evidence, ScoredCurve
from vitscope.claims.counting import Tables, measured_points
from vitscope.claims.points import Points, PublishedCurve
from vitscope.claims.statistics import rank_correlation
from vitscope.claims.tables import AGREEMENT
from vitscope.files.arrays import Array

# Maps the cut point of each curve to the curve's values by x; a single curve has the key 0.
Lines = Mapping[Hashable, "pd.Series[float]"]
# The decimals of published depths. Measured depths are rounded alike, so that points of both curves
# coincide and their values are compared without interpolation.
_DECIMALS = 6
# Changes, as shares of the range of values, count as equal if they agree to this many decimals.
_ALIKE = 4


class _Score(NamedTuple):
    """Share of equal signs, rank correlation of changes, and root mean square error, if known."""

    sign_share: float | None = None
    change_correlation: float | None = None
    error: float | None = None


def score_agreement(
    figure: str, evidence: Evidence, tables: Tables, published: Mapping[str, PublishedCurve]
) -> pd.DataFrame:
    """Score a figure's measured curves against the published curves of the same checkpoints."""
    curve, rows = evidence.curve, []
    for model, each in published.items():
        if curve is None or not each.same_model:
            continue
        measured, points = measured_points(evidence, tables, model), evidence.published(each.points)
        theirs = _curves_through_points(points, curve)
        ours = _interpolate_at_points(_curves_through_points(measured, curve), theirs)
        known = {key: line[ours[key].notna() & line.notna()] for key, line in theirs.items()}
        others = [
            _agreement_of_curves(
                _interpolate_at_points(
                    _curves_through_points(evidence.published(other.points), curve), known
                ),
                known,
            )
            for other in published.values()
            if other.series != each.series
        ]
        rows.append(
            {
                "figure": figure,
                "model": model,
                "published_series": each.series,
                "published_points": len(points),
                "measured_points": len(measured),
                "compared_points": sum(map(len, known.values())),
                **_columns_of_score("{}", _agreement_of_curves(ours, known)),
                **_columns_of_score("{}_of_line", _agreement_of_straight_line(known)),
                **_columns_of_score("{}_of_other", _best_agreement(others)),
                "uncertainty": _uncertainty_over_resamples(measured, known, curve),
                "unit": "decades" if curve.log else curve.y,
            }
        )
    return pd.DataFrame(rows, columns=list(AGREEMENT.columns))


def _columns_of_score(name: str, score: _Score) -> dict[str, float | None]:
    return {name.format(each): value for each, value in score._asdict().items()}


def _curves_through_points(points: pd.DataFrame, curve: ScoredCurve, values: Any = None) -> Lines:
    """Return the curves through a model's points, or through other `values` at the same x.

    The points' own values are replaced by their logarithms if the curve is logarithmic.
    """
    if values is None:
        values = _logarithms_if_asked(points[curve.y].to_numpy(float), curve)
    line = pd.Series(values, points[curve.x].round(_DECIMALS).to_numpy())
    keys = points[curve.by].to_numpy() if curve.by else np.zeros(len(points), int)
    return {key: line[keys == key] for key in dict.fromkeys(keys.tolist())}


def _logarithms_if_asked(y: Array, curve: ScoredCurve) -> Array:
    return np.log10(np.where(y > 0, y, np.nan)) if curve.log else y


def _interpolate_at_points(lines: Lines, theirs: Lines) -> Lines:
    ends = {"left": np.nan, "right": np.nan}
    found = {}
    for key, wanted in theirs.items():
        ours = lines.get(key, pd.Series(dtype=float)).dropna()
        x = wanted.index.to_numpy(float)
        y = np.interp(x, ours.index, ours, **ends) if len(ours) else np.full(len(x), np.nan)
        found[key] = pd.Series(y, wanted.index)
    return found


def _agreement_of_curves(found: Lines, wanted: Lines) -> _Score:
    there = {key: found[key].reindex(line.index).dropna() for key, line in wanted.items()}
    here = {key: wanted[key][line.index] for key, line in there.items()}
    ours, theirs = _changes_along_curves(there), _changes_along_curves(here)
    both = np.isfinite(ours) & np.isfinite(theirs)
    ours, theirs = ours[both], theirs[both]
    correlation = rank_correlation(ours[None], theirs[None])
    return _Score(
        _mean_if_any((np.sign(ours) == np.sign(theirs))[theirs != 0]),
        correlation.value if correlation else None,
        _root_mean_square_if_any(_join_values(there.values()) - _join_values(here.values())),
    )


def _agreement_of_straight_line(wanted: Lines) -> _Score:
    """Return the best score that straight lines, fitted to the published curves, could reach."""
    theirs = _changes_along_curves(wanted)
    rising = _mean_if_any(theirs[np.isfinite(theirs) & (theirs != 0)] > 0)
    return _Score(
        None if rising is None else max(rising, 1 - rising),
        None,
        _root_mean_square_if_any(_join_values(map(_distance_from_straight_line, wanted.values()))),
    )


def _changes_along_curves(lines: Lines) -> Array:
    """Return the slopes of a single curve, or the difference of each curve from the previous one.

    Curves over frequency look alike at all cut points: the effect of a block shows in the
    difference of two curves. Changes are divided by the range of all values, and rounded, so that
    all slopes of a straight line are equal.
    """
    if len(lines) == 1:
        (line,) = lines.values()
        changes = np.diff(line.to_numpy()) / np.diff(line.index.to_numpy(float))
    else:
        pairs = pairwise(lines.values())
        changes = _join_values(
            line - _interpolate_at_points({0: before}, {0: line})[0] for before, line in pairs
        )
    values = _join_values(lines.values())
    return np.round(changes / ((np.ptp(values) if len(values) else 0) or 1), _ALIKE)


def _distance_from_straight_line(line: "pd.Series[float]") -> "pd.Series[float]":
    if len(line) < 2:
        return 0 * line
    x = line.index.to_numpy(float)
    return line - np.polyval(np.polyfit(x, line, 1), x)


def _join_values(lines: "Iterable[pd.Series[float]]") -> Array:
    return np.concatenate([np.empty(0), *(line.to_numpy() for line in lines)])


def _best_agreement(scores: Iterable[_Score]) -> _Score:
    signs, correlations, errors = (
        [each for each in some if each is not None] for some in zip(_Score(), *scores, strict=True)
    )
    return _Score(
        max(signs, default=None), max(correlations, default=None), min(errors, default=None)
    )


def _uncertainty_over_resamples(
    measured: pd.DataFrame, known: Lines, curve: ScoredCurve
) -> float | None:
    """Return the root mean square, over points, of the standard deviation over resamples."""
    values = Points(measured)[curve.y]
    if len(values) == 1:
        return None
    deviations = _logarithms_if_asked(values[1:], curve).std(axis=0, ddof=1)
    found = _interpolate_at_points(_curves_through_points(measured, curve, deviations), known)
    return _root_mean_square_if_any(_join_values(line.dropna() for line in found.values()))


def _mean_if_any(values: Array) -> float | None:
    return float(np.mean(values)) if len(values) else None


def _root_mean_square_if_any(values: Array) -> float | None:
    return float(np.sqrt(np.mean(values**2))) if len(values) else None
