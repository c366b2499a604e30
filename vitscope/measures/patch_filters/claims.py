from vitscope.claims.claim import Claim, Evidence, every_model
from vitscope.claims.points import Points
from vitscope.claims.statistics import Found, Statistic, exactly, rank_correlation

_LEAST_SIDE, _LEAST_COMPONENTS = 3, 4


def _follow_number(points: Points) -> Found | None:
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
                _follow_number,
            ),
            "Not in the paper: Dosovitskiy et al. 2021 (Fig. 7, left) say that the principal "
            "components of the filters of a ViT resemble plausible basis functions of patches, "
            "with smooth ones first, as in a cosine transform.",
        ),
    ),
    lambda rows, _: rows[rows["of"] == "component"].sort_values("number", ignore_index=True),
)
