"""Claims about position embeddings: what they say of where positions are."""

import numpy as np
import pandas as pd

from vitscope.claims.claim import (
    Evidence,
    Finding,
    claim,
    every_model,
    mean_excess,
    rank_correlation,
)
from vitscope.files.arrays import Array


def _pairs(points: pd.DataFrame) -> tuple[Array, Array, Array]:
    """Return for all pairs of positions their cosine, and how far they are apart up and across."""
    row, column = (points[name].to_numpy() for name in ("row", "column"))
    cosines = np.stack([np.asarray(each, np.float64) for each in points["cosines"]])
    one, other = np.triu_indices(len(points), 1)
    up, across = abs(row[one] - row[other]), abs(column[one] - column[other])
    known = np.isfinite(cosines[one, other])
    return cosines[one, other][known], up[known], across[known]


@claim(
    "Positions that are near each other have embeddings that are alike",
    "Dosovitskiy et al. 2021",
    "rank correlation of cosine and nearness",
    every_model,
    holds_above=0,
)
def near_positions_are_alike(points: pd.DataFrame) -> Finding | None:
    """Not in the paper: Dosovitskiy et al. 2021 (Fig. 7, middle) find that positions near each
    other have similar embeddings. The value is the rank correlation (Spearman) between the cosine
    of two embeddings and the distance of their positions, with the sign changed, over all pairs;
    the claim holds if it is above zero. Pairs of a position are not independent: the interval is
    that of as many points as there are positions.
    """
    cosines, up, across = _pairs(points)
    nearness = pd.Series(np.hypot(up, across))
    return rank_correlation(pd.Series(cosines), nearness, -1, independent=len(points))


@claim(
    "Positions of one row or column are more alike than others as far apart",
    "Dosovitskiy et al. 2021",
    "difference of cosines",
    every_model,
    holds_above=0,
)
def positions_of_a_line_are_alike(points: pd.DataFrame) -> Finding | None:
    """Not in the paper: Dosovitskiy et al. 2021 (Fig. 7, middle) find a structure of rows and
    columns: positions in one row or column have similar embeddings. The value is the mean cosine of
    pairs in one row or column minus the mean cosine of other pairs at the same distance, in whole
    positions, averaged over the distances at which there are both; the claim holds if it is above
    zero.
    """
    cosines, up, across = _pairs(points)
    pairs = pd.DataFrame(
        {
            "cosine": cosines,
            "line": (up == 0) | (across == 0),
            "distance": np.hypot(up, across).round().astype(int),
        }
    )
    return mean_excess(pairs, "cosine", "line")


CLAIMS = {
    "position_similarity": Evidence(
        "position_similarity",
        (near_positions_are_alike, positions_of_a_line_are_alike),
        lambda rows, _: rows.sort_values(["row", "column"], ignore_index=True),
    )
}
