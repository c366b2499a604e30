"""Claims about where in a stage a block matters: the accuracy without it. Fig. 10b."""

import pandas as pd

from vitscope.claims.claim import Claim, Curve, Evidence, Finding, every_model, share
from vitscope.claims.depth_bands import subsamples

_RULE = (
    "The paper's Fig. 10b. Stages with two or more blocks of the kind count: a stage is in favour "
    "if removing its first block costs more accuracy than removing its last one (for MSAs, the "
    "other way round). Blocks that subsample do not count: they begin stages, and removing them "
    "costs more than removing Convs alone; the published figure has no points for them. A model "
    "with one stage, or without a stage that counts, has no such claim. Stages are few: by "
    "chance, all of three are in favour once in eight times."
)


def _ends_of_stages(points: pd.DataFrame, kind: str) -> pd.DataFrame:
    """Return what removing the first and the last block of a kind changes, a row for each stage.

    Blocks that subsample, stages that have one other block of the kind, or none, and ends that
    have no value, are left out.
    """
    chosen = (points["kind"] == kind) & ~points["subsampling"]
    blocks = points[chosen & (points["stage"].nunique() > 1)]
    first = blocks.drop_duplicates("stage", keep="first").set_index("stage")
    last = blocks.drop_duplicates("stage", keep="last").set_index("stage")
    ends = pd.DataFrame({"first": first["change"], "last": last["change"]})
    return ends[first["unit"] != last["unit"]].dropna()


def _claim(name: str, statement: str, kind: str, blocks: str, end: str, other: str) -> Claim:
    """Make the claim that removing the block at one end of a stage costs more than at the other."""

    def find(points: pd.DataFrame) -> Finding | None:
        ends = _ends_of_stages(points, kind)
        return share(ends[end] < ends[other])

    measure = f"share of stages with two or more {blocks}"
    return Claim(name, statement, "Fig. 10b", measure, _RULE, every_model, find)


def _measured(rows: pd.DataFrame, blocks: pd.DataFrame) -> pd.DataFrame:
    points = rows.query("kind != 'stem'").sort_values("index", ignore_index=True)
    # Whether a block subsamples shows in the block table: what merges tokens cannot be removed, and
    # has no row among the lesions.
    subsampling = subsamples(blocks.sort_values("index").set_index("index"))
    # The published figure counts from the first block, this table from the stem.
    return points.assign(unit=points["index"] - 1, subsampling=points["index"].map(subsampling))


def _published(points: pd.DataFrame) -> pd.DataFrame:
    # The figure has no points of units that subsample, and each of these begins a stage.
    stage = 1 + (points["index"].diff() > 1).cumsum()
    return points.assign(unit=points["index"], stage=stage, subsampling=False)


CLAIMS = {
    "lesion": Evidence(
        "lesion",
        (
            _claim(
                "first_conv_of_stage_matters",
                "Convs matter more at the beginning of a stage than at its end",
                "conv",
                "Convs",
                "first",
                "last",
            ),
            _claim(
                "first_mlp_of_stage_matters",
                "MLPs matter more at the beginning of a stage than at its end",
                "mlp",
                "MLPs",
                "first",
                "last",
            ),
            _claim(
                "last_msa_of_stage_matters",
                "MSAs matter more at the end of a stage than at its beginning",
                "msa",
                "MSAs",
                "last",
                "first",
            ),
        ),
        _measured,
        _published,
        Curve("unit", "change"),
    )
}
