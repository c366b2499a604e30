import numpy as np
import pandas as pd

from vitscope.claims.claim import Curve, Evidence, claims_of, every_model
from vitscope.claims.points import Points, subsamples
from vitscope.claims.statistics import Statistic, share
from vitscope.files.arrays import Array

_WHY = (
    "The paper's Fig. 10b. Blocks that subsample do not count: they begin stages, and removing "
    "them costs more than removing Convs alone; the published figure has no points for them. A "
    "model with one stage, or without a stage that counts, has no such claim."
)


def _last_minus_first(points: Points, kind: str) -> Array:
    """Subtract the change without a stage's first block of a kind from that without its last."""
    frame = points.frame
    chosen = (frame["kind"] == kind) & ~frame["subsampling"] & (frame["stage"].nunique() > 1)
    of_stages = frame[chosen].groupby("stage").groups.values()
    ends = np.array([(rows[0], rows[-1]) for rows in of_stages if len(rows) > 1], int)
    first, last = ends.reshape(-1, 2).T
    return points["change"][:, last] - points["change"][:, first]


def _more_at(end: str, kind: str, blocks: str) -> Statistic:
    sign = 1 if end == "first" else -1
    ends = ("first", "last")[::sign]
    rule = (
        f"Stages with two or more {blocks} count: a stage is in favour if removing the {ends[0]} "
        f"of them costs more accuracy than removing the {ends[1]}."
    )
    measure = f"share of stages with two or more {blocks}"
    return share(measure, rule, lambda points: sign * _last_minus_first(points, kind))


def _measured(rows: pd.DataFrame, blocks: pd.DataFrame) -> pd.DataFrame:
    points = rows.query("kind != 'stem'").sort_values("index", ignore_index=True)
    # The block table tells: a block that merges tokens cannot be removed, and has no lesion.
    subsampling = subsamples(blocks.sort_values("index").set_index("index"))
    # The published figure counts from the first block, our table from the stem.
    return points.assign(unit=points["index"] - 1, subsampling=points["index"].map(subsampling))


def _published(points: pd.DataFrame) -> pd.DataFrame:
    # The figure leaves out units that subsample, and each of these begins a stage.
    stage = 1 + (points["index"].diff() > 1).cumsum()
    return points.assign(unit=points["index"], stage=stage, subsampling=False)


CLAIMS_LESION = Evidence(
    "lesion",
    claims_of(
        "Fig. 10b",
        every_model,
        _WHY,
        (
            "first_conv_of_stage_matters",
            "Convs matter more at the beginning of a stage than at its end",
            _more_at("first", "conv", "Convs"),
        ),
        (
            "first_mlp_of_stage_matters",
            "MLPs matter more at the beginning of a stage than at its end",
            _more_at("first", "mlp", "MLPs"),
        ),
        (
            "last_msa_of_stage_matters",
            "MSAs matter more at the end of a stage than at its beginning",
            _more_at("last", "msa", "MSAs"),
        ),
    ),
    _measured,
    _published,
    Curve("unit", "change"),
)
