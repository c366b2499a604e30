"""Claims about where in a stage a block matters: the accuracy without it. Fig. 10b."""

from collections.abc import Callable

import pandas as pd

from vitscope.claims.basis import Basis, Curve, RowsOf
from vitscope.claims.claim import Claim, Finding, every_model, share

_RULE = (
    "The paper's Fig. 10b. Counted are the stages that have two or more blocks of the kind: a "
    "stage is in favour where removing the first of these costs more accuracy than removing the "
    "last (for MSAs, the other way round). A model of one stage has no such claim. Stages are few: "
    "by chance alone, all of three are in favour once in eight times."
)


def ends_of_stages(points: pd.DataFrame, kind: str) -> pd.DataFrame:
    """Return what removing the first and the last block of a kind changes, a row for each stage.

    Stages that have one such block, or none, and ends that have no value, are left out.
    """
    blocks = points[(points["kind"] == kind) & (points["stage"].nunique() > 1)]
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
    # The published units are counted from the first block: the stem is none.
    return points.assign(unit=points["index"] - 1)


def _published(points: pd.DataFrame) -> pd.DataFrame:
    # Units that subsample have no point, and each begins a stage.
    return points.assign(unit=points["index"], stage=1 + (points["index"].diff() > 1).cumsum())


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
