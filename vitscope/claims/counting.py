"""How the claims of the paper are counted, on what was measured and on what is published.

The claims of a kind of figure are declared in `claims.py` of the measure that it is drawn of.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from vitscope.claims.claim import Claim, Evidence, Models, Subject, Traits
from vitscope.claims.points import Points
from vitscope.claims.published import Published
from vitscope.claims.snapshots import at_snapshots
from vitscope.claims.statistics import Found
from vitscope.claims.tables import COUNTED
from vitscope.files.tables import Table
from vitscope.networks.finding.cut_points import CUT_POINT, NORM

# The tables that claims are counted on, by name; "blocks" is always among them.
Tables = Mapping[str, pd.DataFrame]
# What a study says of each model, as `Traits` have it.
TraitsOf = Mapping[str, Mapping[str, Any]]


def count_claims(
    figure: str,
    evidence: Evidence,
    tables: Tables,
    models: Sequence[str],
    published: Mapping[str, Published],
    traits_of: TraitsOf,
) -> pd.DataFrame:
    """Count the claims of one figure: a row for each claim and model, or pair of models.

    Where the figure shows several snapshots, each has rows of its own. A claim about one model is
    left out where neither its measured points nor its published ones have anything to count.
    """
    traits = {
        model: Traits({*_of_model(tables["blocks"], model)["kind"]}, traits_of.get(model, {}))
        for model in models
    }
    subjects = _subjects(evidence.claims, traits)
    at_points = {*CUT_POINT} <= {*tables[evidence.table]}
    sides = {model: _side_of(tables["blocks"], model) for model in models if at_points}
    rows = [
        {"figure": figure, "snapshot": snapshot, **row, "statement": _say(row, sides)}
        for snapshot, shown in _by_snapshot(tables, evidence.table)
        for row in _rows(evidence, shown, subjects, published)
    ]
    return pd.DataFrame(rows, columns=list(COUNTED))


def _side_of(blocks: pd.DataFrame, model: str) -> str | None:
    """Return on which side of the norms of its sums a model is read, if it has any."""
    found = _of_model(blocks, model).get(NORM, pd.Series()).dropna().unique()
    return " and ".join(sorted(found)) or None


def _say(row: Mapping[str, Any], sides: Mapping[str, str | None]) -> str:
    """Return what is claimed, and on which side of norms that is read."""
    models = (row[key] for key in ("model", "versus") if row.get(key))
    said = [f"{model} is read {side} its norms" for model in models if (side := sides.get(model))]
    return f"{row['statement']} ({', '.join(said)})" if said else str(row["statement"])


def joined(table: Table, frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Join the rows of all figures; without any, return an empty table."""
    filled = [frame for frame in frames if not frame.empty]
    return pd.concat(filled or [table.empty()], ignore_index=True)


def _by_snapshot(tables: Tables, table: str) -> Iterator[tuple[str | None, Tables]]:
    """Yield the tables of each snapshot, in the order of its first row; or all, if it has none."""
    if "snapshot" not in tables[table]:
        yield None, tables
        return
    for snapshot in tables[table]["snapshot"].unique():
        yield snapshot, at_snapshots(tables, [snapshot])


def _of_model(table: pd.DataFrame, model: str) -> pd.DataFrame:
    return table[table["model"] == model]


def measured_points(evidence: Evidence, tables: Tables, model: str) -> pd.DataFrame:
    """Return the measured points of a model."""
    rows, blocks = (_of_model(tables[name], model) for name in (evidence.table, "blocks"))
    return evidence.measured(rows, blocks)


def _subjects(claims: Sequence[Claim], models: Models) -> list[tuple[Subject, Claim]]:
    """Return which models, or pairs, each claim is about: by model, then in the claims' order."""
    order = [*models]
    found = [(subject, claim) for claim in claims for subject in claim.about(models)]
    return sorted(found, key=lambda each: [order.index(model) for model in each[0]])


def _rows(
    evidence: Evidence,
    tables: Tables,
    subjects: Sequence[tuple[Subject, Claim]],
    published: Mapping[str, Published],
) -> Iterator[dict[str, Any]]:
    """Yield the claims at one snapshot, or of a figure that is about none."""
    shown = dict.fromkeys(model for subject, _ in subjects for model in subject)
    ours = {model: Points(measured_points(evidence, tables, model)) for model in shown}
    theirs = {model: Points(evidence.published(curve.points)) for model, curve in published.items()}
    for subject, claim in subjects:
        measured = claim.find(*(ours[model] for model in subject))
        known = all(model in theirs for model in subject)
        found = claim.find(*(theirs[model] for model in subject)) if known else None
        # A comparison is asked for by name: it has a row even where there is nothing to compare.
        if measured or found or len(subject) > 1:
            series = ", ".join(published[model].series for model in subject) if found else None
            yield {"published_series": series, **_row(claim, subject, measured, found)}


def _row(
    claim: Claim, subject: Subject, measured: Found | None, published: Found | None
) -> dict[str, Any]:
    above = claim.statistic.above
    return {
        "model": subject[0],
        "versus": subject[1] if len(subject) > 1 else None,
        "claim": claim.name,
        "statement": claim.statement,
        "source": claim.source,
        "measure": claim.statistic.measure,
        "percent": claim.statistic.percent,
        "holds_above": above,
        **_side("published", published, above),
        **_side("measured", measured, above),
        "certain": measured.certain if measured else None,
        "margin": None if measured is None else measured.margin,
        "p": measured.chance(above) if measured else None,
    }


def _side(side: str, found: Found | None, above: float) -> dict[str, Any]:
    low, high = (found.interval if found else None) or (None, None)
    verdict = found.verdict(above) if found else None
    # What is read off a curve is shown, and not judged.
    judged = side == "measured" or low is not None
    return {
        f"{side}_count": found.count if found else None,
        f"{side}_total": found.total if found else None,
        f"{side}_value": found.value if found else None,
        f"{side}_low": low,
        f"{side}_high": high,
        f"{side}_verdict": verdict if judged else None,
    }
