import numpy as np
import pandas as pd

from vitscope.claims.claim import Claim, Evidence, every_model
from vitscope.claims.statistics import Statistic, exactly, excess, rank_correlation

_FIGURE = "Not in the paper: Dosovitskiy et al. 2021 (Fig. 7, middle) find"


def _pairs_of_positions(rows: pd.DataFrame, _blocks: pd.DataFrame) -> pd.DataFrame:
    """Return all pairs of positions: cosine, distance, and whether they share a row or column."""
    rows = rows.sort_values(["row", "column"])
    row, column = (rows[name].to_numpy() for name in ("row", "column"))
    cosines = np.stack([np.asarray(each, np.float64) for each in rows["cosines"]])
    one, other = np.triu_indices(len(rows), 1)
    up, across = abs(row[one] - row[other]), abs(column[one] - column[other])
    pairs = {
        "cosine": cosines[one, other],
        "apart": np.hypot(up, across),
        "line": (up == 0) | (across == 0),
    }
    found = pd.DataFrame(pairs).dropna(ignore_index=True)
    return found.assign(distance=found["apart"].round().astype(int))


CLAIMS_POSITION_SIMILARITY = Evidence(
    "position_similarity",
    (
        Claim(
            "near_positions_are_alike",
            "Positions that are near each other have embeddings that are alike",
            "Dosovitskiy et al. 2021",
            every_model,
            Statistic(
                "rank correlation of cosine and nearness",
                "The value is the rank correlation (Spearman) of the cosine of two embeddings "
                "and the distance of their positions, with the sign changed, over all pairs.",
                lambda pairs: exactly(rank_correlation(-pairs["apart"], pairs["cosine"])),
            ),
            f"{_FIGURE} that positions near each other have similar embeddings.",
        ),
        Claim(
            "positions_of_a_line_are_alike",
            "Positions of one row or column are more alike than others as far apart",
            "Dosovitskiy et al. 2021",
            every_model,
            Statistic(
                "difference of cosines",
                "The value is the mean cosine of pairs in one row or column minus the mean "
                "cosine of other pairs at the same distance, in whole positions, averaged over "
                "the distances at which there are both.",
                lambda pairs: exactly(excess(pairs, "cosine", "line")),
            ),
            f"{_FIGURE} a structure of rows and columns: positions in one row or column have "
            "similar embeddings.",
        ),
    ),
    _pairs_of_positions,
)
