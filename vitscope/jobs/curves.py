"""The job that writes an interactive page of curves by depth."""

from dataclasses import dataclass

from vitscope.files.tables import Table
from vitscope.files.whole import write_text
from vitscope.jobs import describing
from vitscope.jobs.job import Files, Job, Names, Resources, Study, Values
from vitscope.jobs.tables import columns_of


@dataclass(frozen=True)
class PageCurve:
    """A curve: a column of a table, in the rows that `where` selects.

    `interval` is the prefix of the columns with the ends of the curve's interval. `kind` is a kind
    of figure, which shows the curve on the page of a network.
    """

    kind: str
    label: str
    column: str
    where: str = ""
    interval: str = "ci"


# By table: the curve that the pages of networks and the page of curves show.
CURVES = {
    "feature_variance": PageCurve("feature_variance", "Feature map variance", "variance"),
    "spatial_share": PageCurve("spatial_share", "Share of the variance within images", "share"),
    "fourier": PageCurve(
        "fourier_depth",
        "Δ log amplitude at 1.0π",
        "delta_log_amplitude",
        "measure == 'diagonal' and frequency == 1",
    ),
    "lesion": PageCurve("lesion", "Δ accuracy without the block (percentage points)", "change"),
    "skip_ratio": PageCurve(
        "skip_ratio", "Norm of shortcut / branch, of positions", "ratio", "tokens == 'positions'"
    ),
    "attention": PageCurve(
        "attention_distance",
        "Attention distance (pixels), renormalized, mean of heads",
        "distance_renormalized",
        "head.isna()",
        "distance_renormalized",
    ),
    "mean_token": PageCurve("mean_token", "Share of the mean token", "share"),
    "singular_values": PageCurve(
        "effective_rank", "Effective rank of tokens", "effective_rank", "of == 'tokens'"
    ),
}


def tables_of_curves(study: Study) -> list[str]:
    """Return the tables whose curves the page shows: tables that the study's figures need."""
    return [table for table in CURVES if table in study.tables()]


def _values_of_curves_job(study: Study, names: Names) -> Values:
    tables = tables_of_curves(study)
    shown = {model for table in tables for model in study.models_of(table)}
    return {
        "title": f"Curves by depth: {describing.title(study)}",
        "members": [
            describing.describe_member(study, name) for name in study.models if name in shown
        ],
        "columns": {table: columns_of(study, table) for table in tables},
    }


def show_curves_job(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    """Write the page from the tables that figures are drawn from."""
    from vitscope.drawing.curves_page import page_of_curves
    from vitscope.drawing.figure import Member

    curves = {}
    for name, columns in values["columns"].items():
        curve, table = CURVES[name], Table(**columns).read(inputs[name])
        rows = table.query(curve.where, engine="python") if curve.where else table
        ends = {end: rows[f"{curve.interval}_{end}"] for end in ("low", "high")}
        # Only the table of attention has no column `kind`: all of its blocks are MSAs.
        curves[curve.label] = rows.assign(
            value=rows[curve.column], kind=rows.get("kind", "msa"), **ends
        )
    members = [Member(**member) for member in values["members"]]
    write_text(outputs["page"], page_of_curves(values["title"], members, curves))


SHOW_CURVES = Job(run=show_curves_job, values=_values_of_curves_job)
