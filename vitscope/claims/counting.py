"""What the paper claims, what was measured, and whether it holds.

`CLAIMS` says for each kind of figure which claims it shows and what they are counted on.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from vitscope.claims.agreement import score
from vitscope.claims.basis import Basis, rows_of
from vitscope.claims.by_block import HIGH_FREQUENCY, VARIANCE
from vitscope.claims.claim import Claim, Finding, Tables
from vitscope.claims.published import Published
from vitscope.claims.tables import AGREEMENT
from vitscope.claims.tables import CLAIMS as CLAIMS_TABLE
from vitscope.claims.telling import introduction, sections
from vitscope.files.pages import Section
from vitscope.files.tables import Table
from vitscope.measures.cka.claims import SIMILARITY
from vitscope.measures.fourier.claims import SPECTRA
from vitscope.measures.frequency_noise.claims import NOISE
from vitscope.measures.landscape.claims import FIT, HESSIAN, LANDSCAPE
from vitscope.measures.lesion.claims import LESIONS
from vitscope.measures.shape_texture.claims import ROBUSTNESS, SHAPE
from vitscope.measures.snapshots import of_snapshots

__all__ = [
    "CLAIMS",
    "as_sections",
    "at_snapshots",
    "count_claims",
    "introduction",
    "score_agreement",
    "tables_needed",
    "together",
]

# Of what other kinds show, nothing is counted.
CLAIMS: dict[str, Basis] = {
    "feature_variance": VARIANCE,
    "fourier_curves": SPECTRA,
    "fourier_depth": HIGH_FREQUENCY,
    "fourier": HIGH_FREQUENCY,
    "frequency_noise": NOISE,
    "cka": SIMILARITY,
    "lesion": LESIONS,
    "shape_texture": SHAPE,
    "robustness": ROBUSTNESS,
    "landscape": LANDSCAPE,
    "hessian": HESSIAN,
    "fit": FIT,
}

_RULES = {claim.name: claim.rule for basis in CLAIMS.values() for claim in basis.claims}


def tables_needed(kinds: Sequence[str]) -> list[str]:
    """Return the tables, beside the blocks, that the claims of some kinds are counted on."""
    return sorted({CLAIMS[kind].table for kind in kinds if kind in CLAIMS})


def at_snapshots(tables: Tables, snapshots: Sequence[str]) -> Tables:
    """Return tables with the rows of some snapshots alone, or all if no snapshot is named."""
    return {
        name: of_snapshots(table, snapshots) if snapshots and "snapshot" in table else table
        for name, table in tables.items()
    }


def _moments(tables: Tables, table: str) -> Iterator[tuple[str | None, Tables]]:
    """Yield the tables of each snapshot, in the order of its first row; or all, if it has none."""
    if "snapshot" not in tables[table]:
        yield None, tables
        return
    for snapshot in tables[table]["snapshot"].unique():
        yield snapshot, at_snapshots(tables, [snapshot])


def _side(side: str, finding: Finding | None) -> dict[str, Any]:
    return {
        f"{side}_count": finding.count if finding else None,
        f"{side}_total": finding.total if finding else None,
        f"{side}_value": finding.value if finding else None,
    }


def _row(
    claim: Claim, subject: Sequence[str], measured: Finding | None, published: Finding | None
) -> dict[str, Any]:
    versus = (measured.versus if measured else None) or (None, None)
    interval = (measured.interval if measured else None) or (None, None)
    return {
        "model": subject[0],
        "versus": subject[1] if len(subject) > 1 else None,
        "claim": claim.name,
        "statement": claim.statement,
        "source": claim.source,
        "measure": claim.measure,
        **_side("published", published),
        **_side("measured", measured),
        "versus_count": versus[0],
        "versus_total": versus[1],
        "ci_low": interval[0],
        "ci_high": interval[1],
        "holds_above": claim.holds_above,
        "holds": measured.value > claim.holds_above if measured else None,
        "apart": measured.apart if measured else None,
    }


def count_claims(
    figure: str,
    kind: str,
    tables: Tables,
    models: Sequence[str],
    published: Mapping[str, Published],
) -> pd.DataFrame:
    """Count the claims of one figure: a row for each claim and model, or pair of models.

    Where the figure shows several moments of training, each has rows of its own. A claim about one
    model is left out where neither it nor its published curve has anything to count.
    """
    basis = CLAIMS[kind]
    rows = [
        {"figure": figure, "snapshot": snapshot, **row}
        for snapshot, shown in _moments(tables, basis.table)
        for row in _rows(basis, shown, models, published)
    ]
    return pd.DataFrame(rows, columns=list(CLAIMS_TABLE.columns))


def _rows(
    basis: Basis, tables: Tables, models: Sequence[str], published: Mapping[str, Published]
) -> Iterator[dict[str, Any]]:
    """Yield the claims of one moment, or of a figure that is about none."""
    ours = {model: basis.measured(rows_of(tables, model)) for model in models}
    theirs = {model: basis.published(curve.points) for model, curve in published.items()}
    kinds_of = {model: set(rows_of(tables, model)("blocks")["kind"]) for model in models}
    about = {claim: set(claim.about(kinds_of)) for claim in basis.claims}
    subjects = sorted(set().union(*about.values()), key=lambda each: [*map(models.index, each)])
    for subject in subjects:
        for claim in (claim for claim in basis.claims if subject in about[claim]):
            measured = claim.find(*(ours[model] for model in subject))
            known = all(model in theirs for model in subject)
            found = claim.find(*(theirs[model] for model in subject)) if known else None
            if measured or found or len(subject) > 1:
                series = ", ".join(published[model].series for model in subject) if found else None
                yield {"published_series": series, **_row(claim, subject, measured, found)}


def score_agreement(
    figure: str, kind: str, tables: Tables, published: Mapping[str, Published]
) -> pd.DataFrame:
    """Score the curves of one figure against the published ones of the same checkpoints."""
    basis, rows = CLAIMS[kind], []
    for model, curve in published.items():
        if not (curve.same_model and basis.curve):
            continue
        ours, theirs = basis.measured(rows_of(tables, model)), basis.published(curve.points)
        correlation, rmse = score(ours, theirs, basis.curve)
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


def together(table: Table, frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Join the rows of all figures; without any, return an empty table."""
    filled = [frame for frame in frames if not frame.empty]
    return pd.concat(filled or [table.empty()], ignore_index=True)


def as_sections(
    claims: pd.DataFrame, agreement: pd.DataFrame, labels: Mapping[str, str]
) -> list[Section]:
    """Tell the claims and scores of a study to a reader; `labels` says how to call each model."""
    return sections(claims, agreement, labels, _RULES)
