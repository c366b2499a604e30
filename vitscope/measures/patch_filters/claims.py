"""Claims about the principal components of the filters that take patches."""

import pandas as pd

from vitscope.claims.claim import Evidence, Finding, claim, every_model, rank_correlation

_LEAST_SIDE, _LEAST_COMPONENTS = 3, 4


@claim(
    "The first principal components of filters are smoother than later ones",
    "Dosovitskiy et al. 2021",
    "rank correlation of number and frequency",
    every_model,
    holds_above=0,
)
def first_components_are_smooth(points: pd.DataFrame) -> Finding | None:
    """Not in the paper: Dosovitskiy et al. 2021 (Fig. 7, left) say that the principal components of
    the filters of a ViT resemble plausible basis functions of patches, with smooth ones first, as
    in a cosine transform. The value is the rank correlation (Spearman) between the number of a
    component and its mean frequency, over the components that are shown; the claim holds if it is
    above zero. Filters narrower than three pixels have too few frequencies, and no such claim.
    """
    known = points.dropna(subset="frequency")
    side = known[["height", "width"]].to_numpy().min(initial=_LEAST_SIDE)
    if len(known) < _LEAST_COMPONENTS or side < _LEAST_SIDE:
        return None
    return rank_correlation(known["number"], known["frequency"])


CLAIMS = {
    "patch_components": Evidence(
        "patch_filters",
        (first_components_are_smooth,),
        lambda rows, _: rows[rows["of"] == "component"].sort_values("number", ignore_index=True),
    )
}
