import pandas as pd

from vitscope.claims.claim import Evidence, Row, attending, every_model, make_claims
from vitscope.claims.intervals import RESAMPLED
from vitscope.claims.points import Points
from vitscope.claims.statistics import Found, Statistic, difference, one_value
from vitscope.measures.class_maps.measure import METHODS

_NAMES = {**METHODS, "random": "a random map"}
_OCCLUDED = (
    "Not in the paper: Selvaraju et al. 2017 find maps of Grad-CAM faithful to CNNs, by what is "
    "occluded."
)
_REMOVED = (
    "Not in the paper: Chefer et al. 2021 remove what maps name, and find those with gradients "
    "more faithful than rollout."
)


def _faithfulness_difference(change: str, more: str, less: str) -> Statistic:
    """Return the area of the method `more` minus the area of `less`, on the same images."""

    def subtract_areas(points: Points) -> Found | None:
        return difference(one_value(points, more), one_value(points, less))

    rule = (
        f"The value is the area below the curve of {change} of {_NAMES[more]}, minus that of "
        f"{_NAMES[less]}. With few images its interval is too narrow."
    )
    return Statistic("difference of areas", rule, subtract_areas)


def _faithfulness_claims(changed: str, cam: Row, rollout: Row) -> Evidence:
    def areas_of_methods(rows: pd.DataFrame, _blocks: pd.DataFrame) -> pd.DataFrame:
        of_methods = rows[rows["change"] == changed].drop_duplicates("method")
        resampled = {f"value{RESAMPLED}": of_methods.get(f"area{RESAMPLED}")}
        return of_methods.assign(
            measure=of_methods["method"], value=of_methods["area"], **resampled
        )

    of_cam = make_claims("Selvaraju et al. 2017", every_model, _OCCLUDED, cam)
    of_rollout = make_claims("Chefer et al. 2021", attending, _REMOVED, rollout)
    return Evidence("faithfulness", of_cam + of_rollout, areas_of_methods)


CLAIMS_DELETION = _faithfulness_claims(
    "deleted",
    (
        "grad_cam_finds_what_to_delete",
        "Deleting what Grad-CAM names lowers the class faster than deleting at random",
        _faithfulness_difference("deletion", "random", "grad_cam"),
    ),
    (
        "gradients_find_what_to_delete",
        "Deleting what gradient rollout names lowers the class faster than what rollout names",
        _faithfulness_difference("deletion", "rollout", "gradient_rollout"),
    ),
)
CLAIMS_INSERTION = _faithfulness_claims(
    "inserted",
    (
        "grad_cam_finds_what_to_insert",
        "Inserting what Grad-CAM names raises the class faster than inserting at random",
        _faithfulness_difference("insertion", "grad_cam", "random"),
    ),
    (
        "gradients_find_what_to_insert",
        "Inserting what gradient rollout names raises the class faster than what rollout names",
        _faithfulness_difference("insertion", "gradient_rollout", "rollout"),
    ),
)
