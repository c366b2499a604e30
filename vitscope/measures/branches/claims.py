import numpy as np
import pandas as pd

from vitscope.claims.claim import (
    Claim,
    Evidence,
    ScoredCurve,
    attending,
    attention_against_convolution,
    every_model,
    make_claims,
)
from vitscope.claims.points import Points, subsamples
from vitscope.claims.statistics import Found, Statistic, difference, rank_correlation, share
from vitscope.files.arrays import Array

_WHY = (
    "The paper's Fig. 10b. Blocks that subsample do not count: they begin stages, and removing "
    "them costs more than removing Convs alone; the published figure has no points for them. A "
    "model with one stage, or without a stage that counts, has no such claim."
)


def _last_lesion_minus_first(points: Points, kind: str) -> Array:
    """Return for each stage the change without the last block of a kind minus without the first."""
    frame = points.frame
    chosen = (frame["kind"] == kind) & ~frame["subsampling"] & (frame["stage"].nunique() > 1)
    of_stages = frame[chosen].groupby("stage").groups.values()
    ends = np.array([(rows[0], rows[-1]) for rows in of_stages if len(rows) > 1], int)
    first, last = ends.reshape(-1, 2).T
    return points["change"][:, last] - points["change"][:, first]


def _lesion_costs_more_at(end: str, kind: str, blocks: str) -> Statistic:
    sign = 1 if end == "first" else -1
    ends = ("first", "last")[::sign]
    rule = (
        f"Stages with two or more {blocks} count: a stage is in favour if removing the {ends[0]} "
        f"of them costs more accuracy than removing the {ends[1]}."
    )
    measure = f"share of stages with two or more {blocks}"
    return share(measure, rule, lambda points: sign * _last_lesion_minus_first(points, kind))


def _units_in_lesion_claims(rows: pd.DataFrame, blocks: pd.DataFrame) -> pd.DataFrame:
    points = rows.query("kind != 'stem'").sort_values("index", ignore_index=True)
    # Compare map sizes in the block table, which has all blocks: `rows` lack blocks that merge
    # tokens, since these cannot be removed.
    subsampling = subsamples(blocks.sort_values("index").set_index("index"))
    # The published figure counts units from the first block, our table from the stem.
    return points.assign(unit=points["index"] - 1, subsampling=points["index"].map(subsampling))


def _published_units(points: pd.DataFrame) -> pd.DataFrame:
    # The figure leaves out units that subsample, so a new stage begins after each gap in the index.
    stage = 1 + (points["index"].diff() > 1).cumsum()
    return points.assign(unit=points["index"], stage=stage, subsampling=False)


CLAIMS_LESION = Evidence(
    "lesion",
    make_claims(
        "Fig. 10b",
        every_model,
        _WHY,
        (
            "first_conv_of_stage_matters",
            "Convs matter more at the beginning of a stage than at its end",
            _lesion_costs_more_at("first", "conv", "Convs"),
        ),
        (
            "first_mlp_of_stage_matters",
            "MLPs matter more at the beginning of a stage than at its end",
            _lesion_costs_more_at("first", "mlp", "MLPs"),
        ),
        (
            "last_msa_of_stage_matters",
            "MSAs matter more at the end of a stage than at its beginning",
            _lesion_costs_more_at("last", "msa", "MSAs"),
        ),
    ),
    _units_in_lesion_claims,
    _published_units,
    ScoredCurve("unit", "change"),
)


def _ratios_of_tokens(points: Points, tokens: str) -> Points:
    return points.where(points.frame["tokens"] == tokens).known("ratio")


def _difference_of_log_ratios(*both: Points) -> Found | None:
    known = (_ratios_of_tokens(points, "positions") for points in both)
    one, other = (np.log(each["ratio"]).mean(axis=1) if len(each) else None for each in known)
    return difference(one, other)


def _class_token_skip_ratio_falls(points: Points) -> Found | None:
    token, others = (_ratios_of_tokens(points, kind) for kind in ("class_token", "positions"))
    depths = token["depth"][0], others["depth"][0]
    depth, of_token, of_others = np.intersect1d(*depths, return_indices=True)
    ratios = token["ratio"][:, of_token] / others["ratio"][:, of_others]
    return rank_correlation(depth[None], -ratios)


CLAIMS_SKIP_RATIO = Evidence(
    "skip_ratio",
    (
        Claim(
            "shortcuts_of_attention_carry_more",
            "Shortcuts of networks with MSAs carry more than those of CNNs",
            "Raghu et al. 2021",
            attention_against_convolution,
            Statistic(
                "difference of mean log ratios",
                "The value is the mean over sums of the natural logarithm of the norm of the "
                "shortcut over that of the branch, of the tokens of positions, of the first "
                "model minus that of the convolutional one.",
                _difference_of_log_ratios,
            ),
            "Not in the paper: Raghu et al. 2021 find that shortcuts are more influential in "
            "ViTs than in ResNets.",
        ),
        Claim(
            "class_token_passes_first",
            "The class token passes through lower shortcuts, other tokens through higher ones",
            "Raghu et al. 2021",
            attending,
            Statistic(
                "rank correlation of ratio and depth, negative",
                "The value is the rank correlation (Spearman), times -1, of depth and the "
                "ratio of norms of the class token divided by that of the tokens of positions.",
                _class_token_skip_ratio_falls,
            ),
            "Not in the paper: Raghu et al. 2021 find that in the lower half of a ViT the "
            "shortcut counts for more for the class token than for other tokens, and in the "
            "upper half for less.",
        ),
    ),
    lambda rows, _blocks: rows,
)
