import pandas as pd

from vitscope.claims.claim import Evidence, Row, attending, claims_of, every_model
from vitscope.claims.intervals import RESAMPLED
from vitscope.claims.points import Points
from vitscope.claims.statistics import Found, Statistic, difference, one_value

_NAMES = {
    "grad_cam": "Grad-CAM",
    "random": "a random map",
    "rollout": "rollout",
    "gradient_rollout": "gradient rollout",
}
_OCCLUDED = (
    "Not in the paper: Selvaraju et al. 2017 find maps of Grad-CAM faithful to CNNs, by what is "
    "occluded."
)
_REMOVED = (
    "Not in the paper: Chefer et al. 2021 remove what maps name, and find those with gradients "
    "more faithful than rollout."
)


def _exceeds(change: str, more: str, less: str) -> Statistic:
    """Subtract the area of the method `less` from that of `more`, on the same images."""

    def find(points: Points) -> Found | None:
        return difference(one_value(points, more), one_value(points, less))

    rule = (
        f"The value is the area below the curve of {change} of {_NAMES[more]}, minus that of "
        f"{_NAMES[less]}. With few images its interval is too narrow."
    )
    return Statistic("difference of areas", rule, find)


def _evidence(changed: str, cam: Row, rollout: Row) -> Evidence:
    def measured(rows: pd.DataFrame, _blocks: pd.DataFrame) -> pd.DataFrame:
        of_methods = rows[rows["change"] == changed].drop_duplicates("method")
        resampled = {f"value{RESAMPLED}": of_methods.get(f"area{RESAMPLED}")}
        return of_methods.assign(
            measure=of_methods["method"], value=of_methods["area"], **resampled
        )

    of_cam = claims_of("Selvaraju et al. 2017", every_model, _OCCLUDED, cam)
    of_rollout = claims_of("Chefer et al. 2021", attending, _REMOVED, rollout)
    return Evidence("faithfulness", of_cam + of_rollout, measured)


CLAIMS_DELETION = _evidence(
    "deleted",
    (
        "grad_cam_finds_what_to_delete",
        "Deleting what Grad-CAM names lowers the class faster than deleting at random",
        _exceeds("deletion", "random", "grad_cam"),
    ),
    (
        "gradients_find_what_to_delete",
        "Deleting what gradient rollout names lowers the class faster than what rollout names",
        _exceeds("deletion", "rollout", "gradient_rollout"),
    ),
)
CLAIMS_INSERTION = _evidence(
    "inserted",
    (
        "grad_cam_finds_what_to_insert",
        "Inserting what Grad-CAM names raises the class faster than inserting at random",
        _exceeds("insertion", "grad_cam", "random"),
    ),
    (
        "gradients_find_what_to_insert",
        "Inserting what gradient rollout names raises the class faster than what rollout names",
        _exceeds("insertion", "gradient_rollout", "rollout"),
    ),
)
