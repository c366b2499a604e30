"""Claims about the principal components of the filters that take patches."""

import pandas as pd
from scipy.stats import spearmanr

from vitscope.claims.claim import Claim, Finding, every_model
from vitscope.claims.evidence import Evidence
from vitscope.measures.patch_filters.table import COMPONENT, TABLE

_RULE = (
    "Not in the paper: Dosovitskiy et al. 2021 (Fig. 7, left) say that the principal components "
    "of the filters of a ViT resemble plausible basis functions of patches, with smooth ones "
    "first, as in a cosine transform. The value is the rank correlation (Spearman) between the "
    "number of a component and its mean frequency, over the components that are shown; the claim "
    "holds if it is above zero. Filters narrower than three pixels have too few frequencies, and "
    "no such claim."
)
_LEAST_SIDE, _LEAST_COMPONENTS = 3, 4


def _rougher(points: pd.DataFrame) -> Finding | None:
    known = points.dropna(subset="frequency")
    side = known[["height", "width"]].to_numpy().min(initial=_LEAST_SIDE)
    if len(known) < _LEAST_COMPONENTS or side < _LEAST_SIDE or known["frequency"].nunique() == 1:
        return None
    return Finding(float(spearmanr(known["number"], known["frequency"]).statistic))


def _components(rows: pd.DataFrame, _blocks: pd.DataFrame) -> pd.DataFrame:
    return rows[rows["of"] == COMPONENT].sort_values("number", ignore_index=True)


CLAIMS = {
    "patch_components": Evidence(
        TABLE,
        (
            Claim(
                "first_components_are_smooth",
                "The first principal components of filters are smoother than later ones",
                "Dosovitskiy et al. 2021",
                "rank correlation of number and frequency",
                _RULE,
                every_model,
                _rougher,
                holds_above=0,
            ),
        ),
        _components,
    )
}
