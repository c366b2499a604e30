"""Claims about where in a stage a block matters: the accuracy without it. Fig. 10b."""

from collections.abc import Callable

import pandas as pd

from vitscope.claims.basis import Basis, Curve, RowsOf
from vitscope.claims.claim import Claim, Finding, every_model, share
from vitscope.measures.depth_bands import subsamples

_RULE = (
    "The paper's Fig. 10b. Counted are the stages that have two or more blocks of the kind: a "
    "stage is in favour where removing the first of these costs more accuracy than removing the "
    "last (for MSAs, the other way round). Blocks that subsample do not count: they begin "
    "stages, and what removing them costs is not that of Convs alone; the published figure has no "
    "points of them. A model of one stage, or without a stage that counts, has no such claim. "
    "Stages are few: by chance alone, all of three are in favour once in eight times."
)


def ends_of_stages(points: pd.DataFrame, kind: str) -> pd.DataFrame:
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


def first_costs_more(kind: str) -> Callable[[pd.DataFrame], Finding | None]:
    """Count the stages of which removing the first block costs more than removing the last."""

    def find(points: pd.DataFrame) -> Finding | None:
        ends = ends_of_stages(points, kind)
        return share(ends["first"] < ends["last"])

    return find


def last_costs_more(kind: str) -> Callable[[pd.DataFrame], Finding | None]:
    """Count the stages of which removing the last block costs more than removing the first."""

    def find(points: pd.DataFrame) -> Finding | None:
        ends = ends_of_stages(points, kind)
        return share(ends["last"] < ends["first"])

    return find


def _claim(
    name: str, statement: str, blocks: str, find: Callable[[pd.DataFrame], Finding | None]
) -> Claim:
    measure = f"share of stages with two or more {blocks}"
    return Claim(name, statement, "Fig. 10b", measure, _RULE, every_model, find)


def _measured(rows: RowsOf) -> pd.DataFrame:
    points = rows("lesion").query("kind != 'stem'").sort_values("index", ignore_index=True)
    # Of all cut points: what merges tokens has no row among the lesions.
    blocks = rows("blocks").sort_values("index").set_index("index")
    # The published units are counted from the first block: the stem is none.
    return points.assign(
        unit=points["index"] - 1, subsampling=points["index"].map(subsamples(blocks))
    )


def _published(points: pd.DataFrame) -> pd.DataFrame:
    # Units that subsample have no point, and each begins a stage.
    stage = 1 + (points["index"].diff() > 1).cumsum()
    return points.assign(unit=points["index"], stage=stage, subsampling=False)


LESIONS = Basis(
    "lesion",
    (
        _claim(
            "first_conv_of_stage_matters",
            "Convs matter more at the beginning of a stage than at its end",
            "Convs",
            first_costs_more("conv"),
        ),
        _claim(
            "first_mlp_of_stage_matters",
            "MLPs matter more at the beginning of a stage than at its end",
            "MLPs",
            first_costs_more("mlp"),
        ),
        _claim(
            "last_msa_of_stage_matters",
            "MSAs matter more at the end of a stage than at its beginning",
            "MSAs",
            last_costs_more("msa"),
        ),
    ),
    _measured,
    _published,
    Curve("unit", "change"),
)
