"""Claims about position embeddings: what they say of where positions are."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import spearmanr

from vitscope.claims.claim import Claim, Finding, every_model
from vitscope.claims.evidence import Evidence
from vitscope.measures.position_similarity.table import TABLE

Array = npt.NDArray[Any]

_NEAR = (
    "Not in the paper: Dosovitskiy et al. 2021 (Fig. 7, middle) find that positions near each "
    "other have similar embeddings. The value is the rank correlation (Spearman) between the "
    "cosine of two embeddings and the distance of their positions, with the sign changed, over "
    "all pairs; the claim holds if it is above zero."
)
_LINES = (
    "Not in the paper: Dosovitskiy et al. 2021 (Fig. 7, middle) find a structure of rows and "
    "columns: positions in one row or column have similar embeddings. The value is the mean "
    "cosine of pairs in one row or column minus the mean cosine of other pairs at the same "
    "distance, in whole positions, averaged over the distances at which there are both; the claim "
    "holds if it is above zero."
)


def _pairs(points: pd.DataFrame) -> tuple[Array, Array, Array]:
    """Return for all pairs of positions their cosine, and how far they are apart up and across."""
    row, column = (points[name].to_numpy() for name in ("row", "column"))
    cosines = np.stack([np.asarray(each, np.float64) for each in points["cosines"]])
    one, other = np.triu_indices(len(points), 1)
    up, across = abs(row[one] - row[other]), abs(column[one] - column[other])
    known = np.isfinite(cosines[one, other])
    return cosines[one, other][known], up[known], across[known]


def _near(points: pd.DataFrame) -> Finding | None:
    cosines, up, across = _pairs(points)
    distances = np.hypot(up, across)
    if len(cosines) < 3 or np.ptp(cosines) == 0 or np.ptp(distances) == 0:
        return None
    return Finding(-float(spearmanr(cosines, distances).statistic))


def _lines(points: pd.DataFrame) -> Finding | None:
    cosines, up, across = _pairs(points)
    pairs = pd.DataFrame(
        {
            "cosine": cosines,
            "line": (up == 0) | (across == 0),
            "distance": np.hypot(up, across).round().astype(int),
        }
    )
    means = pairs.groupby(["distance", "line"])["cosine"].mean().unstack()
    if not {True, False} <= {*means.columns}:
        return None
    differences = (means[True] - means[False]).dropna()
    return Finding(float(differences.mean())) if len(differences) else None


def _in_order(rows: pd.DataFrame, _blocks: pd.DataFrame) -> pd.DataFrame:
    return rows.sort_values(["row", "column"], ignore_index=True)


CLAIMS = {
    "position_similarity": Evidence(
        TABLE,
        (
            Claim(
                "near_positions_are_alike",
                "Positions that are near each other have embeddings that are alike",
                "Dosovitskiy et al. 2021",
                "rank correlation of cosine and nearness",
                _NEAR,
                every_model,
                _near,
                holds_above=0,
            ),
            Claim(
                "positions_of_a_line_are_alike",
                "Positions of one row or column are more alike than others as far apart",
                "Dosovitskiy et al. 2021",
                "difference of cosines",
                _LINES,
                every_model,
                _lines,
                holds_above=0,
            ),
        ),
        _in_order,
    )
}
