import numpy as np
import pandas as pd

from vitscope.claims.claim import Claim, Evidence, every_model
from vitscope.claims.points import Points
from vitscope.claims.statistics import (
    Found,
    Statistic,
    exactly,
    excess_of_alike_pairs,
    rank_correlation,
)

_LEAST_SIDE, _LEAST_COMPONENTS = 3, 4


def _smoothness_of_patch_components(points: Points) -> Found | None:
    known = points.known("frequency")
    side = known.frame[["height", "width"]].to_numpy().min(initial=_LEAST_SIDE)
    if len(known) < _LEAST_COMPONENTS or side < _LEAST_SIDE:
        return None
    return exactly(rank_correlation(known["number"], known["frequency"]))


CLAIMS_PATCH_COMPONENTS = Evidence(
    "patch_filters",
    (
        Claim(
            "first_components_are_smooth",
            "The first principal components of filters are smoother than later ones",
            "Dosovitskiy et al. 2021",
            every_model,
            Statistic(
                "rank correlation of number and frequency",
                "The value is the rank correlation (Spearman) of the number of a component and "
                "its mean frequency, over the components that are shown. Filters narrower than "
                "three pixels have too few frequencies, and no such claim.",
                _smoothness_of_patch_components,
            ),
            "Not in the paper: Dosovitskiy et al. 2021 (Fig. 7, left) say that the principal "
            "components of the filters of a ViT resemble plausible basis functions of patches, "
            "with smooth ones first, as in a cosine transform.",
        ),
    ),
    lambda rows, _: rows[rows["of"] == "component"].sort_values("number", ignore_index=True),
)


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
                lambda pairs: exactly(excess_of_alike_pairs(pairs, "cosine", "line")),
            ),
            f"{_FIGURE} a structure of rows and columns: positions in one row or column have "
            "similar embeddings.",
        ),
    ),
    _pairs_of_positions,
)
