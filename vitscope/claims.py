"""What the paper claims, what was measured, and whether it holds."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import spearmanr

from vitscope.bands import subsamples
from vitscope.pages import Section
from vitscope.published import Published
from vitscope.tables import TABLES

Array = npt.NDArray[Any]

# More than this share of the blocks must do as claimed.
HOLDS_ABOVE = 0.5

RULE = (
    "A claim is about a kind of block. Each block of that kind is counted, and it counts in favour "
    "where the feature map after it has a lower (or higher, as claimed) value than the one before "
    "it. A claim holds where more than half of the blocks count in favour. Blocks that subsample "
    "have a claim of their own and count in no other."
)
AGREEMENT_RULE = (
    "Where the study measures the checkpoints that were published, its curve is interpolated at "
    "the published depths. The rank correlation is Spearman's; the error is the root mean square "
    "difference over the range of the published values."
)


@dataclass(frozen=True)
class Claim:
    """The value falls (or rises) over the blocks of one kind."""

    name: str
    statement: str
    blocks: Callable[[pd.DataFrame], pd.Series]
    falls: bool

    def count(self, points: pd.DataFrame, value: str) -> tuple[int, int]:
        """Return how many blocks do as claimed, and of how many; `points` are in order."""
        change = points[value].diff()
        counted = self.blocks(points) & change.notna()
        favours = counted & (change < 0 if self.falls else change > 0)
        return int(favours.sum()), int(counted.sum())


def _of_kind(kind: str) -> Callable[[pd.DataFrame], pd.Series]:
    return lambda points: (points["kind"] == kind) & ~points["subsampling"]


_FEATURE_VARIANCE = (
    Claim(
        "msa_reduces_variance",
        "MSAs reduce the feature map variance",
        _of_kind("msa"),
        falls=True,
    ),
    Claim(
        "conv_increases_variance",
        "Convs that do not subsample increase the feature map variance",
        _of_kind("conv"),
        falls=False,
    ),
    Claim(
        "mlp_increases_variance",
        "MLPs increase the feature map variance",
        _of_kind("mlp"),
        falls=False,
    ),
    Claim(
        "subsampling_reduces_variance",
        "Subsampling reduces the feature map variance",
        lambda points: points["subsampling"],
        falls=True,
    ),
)

# For each kind of figure: the column of its table that counts, and the claims that it is about.
CLAIMS: dict[str, tuple[str, tuple[Claim, ...]]] = {
    "feature_variance": ("variance", _FEATURE_VARIANCE)
}


def _points_of(table: pd.DataFrame, model: str) -> pd.DataFrame:
    points = table[table["model"] == model].sort_values("index").reset_index(drop=True)
    return points.assign(subsampling=subsamples(points))


def _row(
    claim: Claim, value: str, measured: pd.DataFrame, theirs: Published | None
) -> dict[str, Any]:
    count, total = claim.count(measured, value)
    their_count, their_total = claim.count(theirs.points, value) if theirs else (0, 0)
    return {
        "claim": claim.name,
        "statement": claim.statement,
        "published_series": theirs.series if theirs and their_total else None,
        "published_count": their_count if their_total else None,
        "published_total": their_total or None,
        "measured_count": count,
        "measured_total": total,
        "share": count / total if total else None,
        "holds": count / total > HOLDS_ABOVE if total else None,
    }


def count_claims(
    figure: str,
    kind: str,
    table: pd.DataFrame,
    models: Iterable[str],
    published: Mapping[str, Published],
) -> pd.DataFrame:
    """Count the claims of one figure: a row for each model and claim about a block that it has."""
    value, claims = CLAIMS[kind]
    rows = []
    for model in models:
        points = _points_of(table, model)
        for claim in claims:
            row = _row(claim, value, points, published.get(model))
            if row["measured_total"] or row["published_total"]:
                rows.append({"figure": figure, "model": model, **row})
    return pd.DataFrame(rows, columns=list(TABLES["claims"]))


def _scores(
    depth: Array, value: Array, their_depth: Array, their_value: Array
) -> tuple[float | None, float | None]:
    """Return rank correlation and normalized error; None where a constant curve has none."""
    # Published depths have six decimals: a depth that both curves have must meet to the bit, for
    # an interpolated value next to it would break ties between ranks.
    ours = np.interp(their_depth.round(6), depth.round(6), value)
    span = np.ptp(their_value)
    if span == 0 or not np.isfinite(ours).all():
        return None, None
    rmse = float(np.sqrt(np.mean((ours - their_value) ** 2)) / span)
    if np.ptp(ours) == 0:
        return None, rmse
    return float(spearmanr(ours, their_value).statistic), rmse


def score_agreement(
    figure: str, kind: str, table: pd.DataFrame, published: Mapping[str, Published]
) -> pd.DataFrame:
    """Score each curve of one figure against the published one of the same checkpoint."""
    value, _ = CLAIMS[kind]
    rows = []
    for model, theirs in published.items():
        if not theirs.same_model:
            continue
        points = _points_of(table, model)
        ours = (points["depth"].to_numpy(), points[value].to_numpy())
        correlation, rmse = _scores(
            *ours, theirs.points["depth"].to_numpy(), theirs.points[value].to_numpy()
        )
        rows.append(
            {
                "figure": figure,
                "model": model,
                "published_series": theirs.series,
                "published_points": len(theirs.points),
                "measured_points": len(points),
                "rank_correlation": correlation,
                "normalized_rmse": rmse,
            }
        )
    return pd.DataFrame(rows, columns=list(TABLES["agreement"]))


def _count(count: float, total: float) -> str:
    return "–" if pd.isna(total) else f"{count:.0f} of {total:.0f}"


def _number(number: float) -> str:
    return "–" if pd.isna(number) else f"{number:.3f}"


def _claims_of(figure: str, claims: pd.DataFrame, labels: Mapping[str, str]) -> Section:
    rows = [
        (
            labels[row["model"]],
            row["statement"],
            _count(row["published_count"], row["published_total"]),
            _count(row["measured_count"], row["measured_total"]),
            "–" if pd.isna(row["holds"]) else "yes" if row["holds"] else "no",
        )
        for row in claims.to_dict("records")
    ]
    return Section(figure, "", ("model", "claim", "published", "measured", "holds"), rows)


def _agreement_of(agreement: pd.DataFrame, labels: Mapping[str, str]) -> Section:
    header = ("figure", "model", "published series", "rank correlation", "normalized error")
    rows = [
        (
            row["figure"],
            labels[row["model"]],
            f"{row['published_series']}, {row['published_points']} points",
            _number(row["rank_correlation"]),
            _number(row["normalized_rmse"]),
        )
        for row in agreement.to_dict("records")
    ]
    return Section("Agreement with the published curves", AGREEMENT_RULE, header, rows)


def as_sections(
    claims: pd.DataFrame, agreement: pd.DataFrame, labels: Mapping[str, str]
) -> list[Section]:
    """Tell the claims and scores of a study to a reader; `labels` says how to call each model."""
    sections = [
        _claims_of(str(figure), of_figure, labels)
        for figure, of_figure in claims.groupby("figure", sort=False)
    ]
    return sections if agreement.empty else [*sections, _agreement_of(agreement, labels)]
