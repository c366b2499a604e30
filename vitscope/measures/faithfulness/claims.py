"""Claims that Grad-CAM is faithful, and maps with gradients more so than attention alone."""

import pandas as pd

from vitscope.claims.claim import Evidence, Finding, attending, claim, every_model
from vitscope.claims.comparing import larger

_INTERVAL = (
    "Its 95 % interval is computed from the intervals of both methods, and is too wide, since both "
    "are of the same images."
)


def _compare(points: pd.DataFrame, more: str, less: str) -> Finding | None:
    of = points.set_index("method")
    return larger("area")(of.loc[of.index == more], of.loc[of.index == less])


@claim(
    "Deleting what Grad-CAM names lowers the class faster than deleting at random",
    "Selvaraju et al. 2017",
    "difference of areas",
    every_model,
    more=_INTERVAL,
    holds_above=0,
)
def grad_cam_finds_what_to_delete(points: pd.DataFrame) -> Finding | None:
    """Not in the paper: Selvaraju et al. 2017 find maps of Grad-CAM faithful to CNNs, by what is
    occluded. The value is the area below the curve of deletion of a random map, minus that of
    Grad-CAM; the claim holds if it is above zero.
    """
    return _compare(points, "random", "grad_cam")


@claim(
    "Inserting what Grad-CAM names raises the class faster than inserting at random",
    "Selvaraju et al. 2017",
    "difference of areas",
    every_model,
    more=_INTERVAL,
    holds_above=0,
)
def grad_cam_finds_what_to_insert(points: pd.DataFrame) -> Finding | None:
    """Not in the paper: Selvaraju et al. 2017 find maps of Grad-CAM faithful to CNNs, by what is
    occluded. The value is the area below the curve of insertion of Grad-CAM, minus that of a random
    map; the claim holds if it is above zero.
    """
    return _compare(points, "grad_cam", "random")


@claim(
    "Deleting what gradient rollout names lowers the class faster than what rollout names",
    "Chefer et al. 2021",
    "difference of areas",
    attending,
    more=_INTERVAL,
    holds_above=0,
)
def gradients_find_what_to_delete(points: pd.DataFrame) -> Finding | None:
    """Not in the paper: Chefer et al. 2021 remove what maps name, and find those with gradients
    more faithful than rollout. The value is the area below the curve of deletion of rollout, minus
    that of gradient rollout; the claim holds if it is above zero.
    """
    return _compare(points, "rollout", "gradient_rollout")


@claim(
    "Inserting what gradient rollout names raises the class faster than what rollout names",
    "Chefer et al. 2021",
    "difference of areas",
    attending,
    more=_INTERVAL,
    holds_above=0,
)
def gradients_find_what_to_insert(points: pd.DataFrame) -> Finding | None:
    """Not in the paper: Chefer et al. 2021 find maps with gradients more faithful than rollout, by
    what is removed. The value is the area below the curve of insertion of gradient rollout, minus
    that of rollout; the claim holds if it is above zero.
    """
    return _compare(points, "gradient_rollout", "rollout")


def _areas_of(change: str, rows: pd.DataFrame) -> pd.DataFrame:
    of_methods = rows[rows["change"] == change].drop_duplicates("method")
    ends = {"ci_low": of_methods["area_low"], "ci_high": of_methods["area_high"]}
    return of_methods.assign(measure="area", value=of_methods["area"], **ends)


CLAIMS = {
    "deletion": Evidence(
        "faithfulness",
        (grad_cam_finds_what_to_delete, gradients_find_what_to_delete),
        lambda rows, _blocks: _areas_of("deleted", rows),
    ),
    "insertion": Evidence(
        "faithfulness",
        (grad_cam_finds_what_to_insert, gradients_find_what_to_insert),
        lambda rows, _blocks: _areas_of("inserted", rows),
    ),
}
