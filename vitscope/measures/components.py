"""High-frequency components of cut points, from the table `fourier`."""

import pandas as pd

from vitscope.claims.claim import rows_of_blocks, with_subsampling
from vitscope.drawing.figure import Members, rows_of

COMPONENT = "delta_log_amplitude"
# Claims that blocks change the component.
OF_BLOCKS = rows_of_blocks("high_frequency", COMPONENT, "high-frequency component")


def diagonals(rows: pd.DataFrame, _blocks: pd.DataFrame | None = None) -> pd.DataFrame:
    """Return the rows of the curves along the half-diagonal, by cut point and frequency."""
    diagonal = rows[rows["measure"] == "diagonal"]
    return diagonal.sort_values(["index", "frequency"], ignore_index=True)


def ends_of_curves(curves: pd.DataFrame) -> pd.DataFrame:
    """Return the row at 1.0 pi of each cut point, with null values if only frequency 0 exists."""
    ends = curves.groupby("index").tail(1).reset_index(drop=True)
    values = [COMPONENT, "ci_low", "ci_high"]
    return ends.assign(**ends[values].where(ends["frequency"] > 0))


def ends_of_models(table: pd.DataFrame, members: Members) -> pd.DataFrame:
    """Return the rows at 1.0 pi of all cut points, for all models."""
    curves = diagonals(table)
    return pd.concat(ends_of_curves(rows_of(curves, member.model)) for member in members)


def components_of_blocks(rows: pd.DataFrame, _blocks: pd.DataFrame) -> pd.DataFrame:
    """Return the points that `OF_BLOCKS` is counted on."""
    return with_subsampling(ends_of_curves(diagonals(rows)))
