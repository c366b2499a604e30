"""Claims that one model has a larger number than another, or a smaller one.

Their points have the columns measure and value, and ci_low and ci_high where the value has an
interval.
"""

from dataclasses import replace
from math import isclose

import numpy as np
import pandas as pd

from vitscope.claims.chance import Estimate, difference_interval
from vitscope.claims.claim import Find, Finding, Measured


def value_in_row(value: str, column: str, name: str) -> Measured:
    """Return how to find the point of a model in one row of its table, by a name in a column.

    Its measure is the column that has the value.
    """

    def measured(rows: pd.DataFrame, _blocks: pd.DataFrame) -> pd.DataFrame:
        row = rows[rows[column] == name]
        return row.assign(measure=value, value=row[value])

    return measured


def larger(measure: str) -> Find:
    """Return how to find by how much the first model has the larger value of a measure."""
    return lambda ours, theirs: _compare(measure, ours, theirs)


def smaller(measure: str) -> Find:
    """Return how to find by how much the first model has the smaller value of a measure."""
    return lambda ours, theirs: _compare(measure, theirs, ours)


def difference(more: float | None, less: float | None) -> Finding | None:
    """Find by how much one number exceeds another; None where one is missing.

    Numbers that differ by rounding are equal, or it would decide a claim.
    """
    if more is None or less is None:
        return None
    return Finding(0.0 if isclose(more, less) else more - less)


def _compare(measure: str, more: pd.DataFrame, less: pd.DataFrame) -> Finding | None:
    """Find a difference, with its interval where both values have one."""
    more, less = (points[points["measure"] == measure] for points in (more, less))
    found = difference(_value(more), _value(less))
    estimates = _estimate(more), _estimate(less)
    if found is None or estimates[0] is None or estimates[1] is None:
        return found
    return replace(found, interval=difference_interval(estimates[0], estimates[1]))


def _value(points: pd.DataFrame) -> float | None:
    """Return the value, or None where there is none or it is not finite."""
    values = points["value"]
    return float(values.iloc[0]) if len(values) and np.isfinite(values.iloc[0]) else None


def _estimate(points: pd.DataFrame) -> Estimate | None:
    """Return the value and its interval, or None where it has none, or one without a width."""
    columns = ["value", "ci_low", "ci_high"]
    if not len(points) or not {*columns} <= {*points}:
        return None
    value, low, high = points[columns].iloc[0].astype(float)
    known = np.isfinite([value, low, high]).all() and low < high
    return (value, (low, high)) if known else None
