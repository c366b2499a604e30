from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from vitscope.claims.claim import Claim, Evidence, attending, named_in
from vitscope.claims.points import Points
from vitscope.claims.statistics import (
    RANGE,
    Found,
    Statistic,
    difference,
    grows_with_depth,
    log_ratio,
    paired,
    share,
    value_of,
)
from vitscope.files.arrays import Array

_DISTANCE = "distance_renormalized"
_THIRDS = (
    "The first third of a network has the attentions with a normalized depth of at most a third, "
    "the last third those with at least two thirds."
)
_REACH = "divided by the distance of queries that attend to all keys equally"
_PROBING = "Not in the paper: Gosthipaty and Paul 2022 (Probing ViTs) find"


def _published_attention(points: pd.DataFrame) -> pd.DataFrame:
    names = {"block": "attention", "attention_distance_px": _DISTANCE, "attention_nmi": "nmi"}
    # A block is an MSA and an MLP, so its MSA lies half a block before its end.
    depth = (points["block"] + 0.5) / len(points)
    missing = pd.Series([None] * len(points), dtype="Int32")
    unknown = dict.fromkeys(("distance_uniform", "distance_anywhere"), float("nan"))
    rest: dict[str, Any] = {"head": missing, "heads": 1, "windows": 1, **unknown}
    found = points.rename(columns=names).assign(depth=depth, **rest)
    # A file may lack the distance or the NMI; the missing column stays null.
    return found.reindex(columns=[*found.columns.union([_DISTANCE, "distance", "nmi"])])


def _heads_with_distance(points: Points) -> Points:
    return points.where(points.frame["head"].notna() & points.frame[_DISTANCE].notna())


def _means_over_heads(points: Points, value: str) -> Points:
    """Keep the rows of means over heads in which `value` is known."""
    return points.where(points.frame["head"].isna() & points.frame[value].notna())


def _relative_distance(heads: Points) -> Array:
    return np.divide(heads[_DISTANCE], heads["distance_uniform"])


def _early_minus_late_spread(points: Points) -> Found | None:
    heads = _heads_with_distance(points)
    several = heads.where(heads.frame["heads"] > 1)
    attention, depth = (several.frame[name].to_numpy() for name in ("attention", "depth"))
    reach, spreads = _relative_distance(several), []
    for third in (depth <= 1 / 3, depth >= 2 / 3):
        each = [np.ptp(reach[:, attention == one], axis=1) for one in np.unique(attention[third])]
        if not each:
            return None
        spreads.append(np.mean(each, axis=0))
    return value_of(spreads[0] - spreads[1])


def _late_attention_excess(
    points: Points, values_of: Callable[[Points], Array], factor: float = 1
) -> Array | None:
    """Compare the values in the last third of the network with `factor` times the mean of all."""
    values, last = values_of(points), points.frame["depth"].to_numpy() >= 2 / 3
    mean = factor * values.mean(axis=1, keepdims=True)
    return log_ratio(values[:, last], mean) if last.any() else None


def _nearer_than_whole_image(points: Points) -> Array:
    heads = _heads_with_distance(points)
    within = heads.where(heads.frame["windows"] > 1)
    return log_ratio(within["distance_anywhere"], within[_DISTANCE])


def _extra_attention_distance(ours: Points, theirs: Points) -> Array:
    means = [_means_over_heads(each, "distance") for each in (ours, theirs)]
    both = {*means[0].frame["attention"]} & {*means[1].frame["attention"]}
    our, their = (each.where(each.frame["attention"].isin(both))["distance"] for each in means)
    return log_ratio(*paired(our, their))


def _compare_mean_distances(does: str, margins: Callable[[Points, Points], Array]) -> Statistic:
    rule = (
        "Each attention of the first model is compared with the one of the same number of the "
        f"second; it is in favour if the mean distance of its heads is {does}. The distance is the "
        "one that is not renormalized, as in that article. `pretraining` of a model says which "
        "models are compared."
    )
    return share("share of attentions", rule, margins)


_GROWS = grows_with_depth(_DISTANCE, "mean distance of the heads of an attention")

_ABOUT_DISTANCE = (
    Claim(
        "early_heads_look_near_and_far",
        "Early heads look near and far, late ones alike",
        "Dosovitskiy et al. 2021",
        attending,
        Statistic(
            "difference of spreads",
            "The spread of an attention is the largest minus the smallest distance of its heads, "
            f"{_REACH}. The value is the mean spread of the first third minus the mean spread of "
            f"the last third. {_THIRDS}",
            _early_minus_late_spread,
        ),
        "Not in the paper: Dosovitskiy et al. 2021 find heads with small and heads with large "
        "distances side by side in the first blocks of a ViT, and only large distances in the "
        "last.",
    ),
    Claim(
        "late_heads_look_far",
        "Late heads look far",
        "Raghu et al. 2021",
        attending,
        share(
            "share of late heads",
            f"The heads of the last third count: a head is in favour if its distance, {_REACH}, is "
            f"above the mean over all heads of the network. {_THIRDS}",
            lambda points: _late_attention_excess(_heads_with_distance(points), _relative_distance),
        ),
        "Not in the paper: Raghu et al. 2021 find that heads in the last blocks of a ViT look far.",
    ),
    Claim(
        "distance_grows",
        "Attention looks farther with depth",
        "Dosovitskiy et al. 2021",
        attending,
        Statistic(
            "rank correlation of distance and depth",
            "The value is the rank correlation (Spearman) of depth and the mean distance of the "
            f"heads of an attention, in pixels. {RANGE}",
            lambda points: _GROWS.find(_means_over_heads(points, _DISTANCE)),
        ),
        "Not in the paper: Dosovitskiy et al. 2021 find that the distance of attention grows with "
        "depth.",
    ),
    Claim(
        "windows_bound_distance",
        "Windows bound how far attention looks",
        "Liu et al. 2021",
        attending,
        share(
            "share of heads in windows",
            "Heads of attention with several windows count: a head is in favour if its distance is "
            "below the distance of queries that attend equally to the whole image.",
            _nearer_than_whole_image,
        ),
        "Not in the paper: Liu et al. 2021 restrict attention to windows.",
    ),
    Claim(
        "more_images_look_farther",
        "Pretraining on more images makes attention look farther",
        "Gosthipaty and Paul 2022",
        named_in("pretraining.more_images"),
        _compare_mean_distances("larger", _extra_attention_distance),
        f"{_PROBING} more global attention in a ViT that was pretrained on ImageNet-21k than in "
        "one that was trained on ImageNet-1k alone.",
    ),
    Claim(
        "distillation_looks_nearer",
        "Distillation from a CNN makes attention look less far",
        "Gosthipaty and Paul 2022",
        named_in("pretraining.distillation"),
        _compare_mean_distances(
            "smaller", lambda ours, theirs: _extra_attention_distance(theirs, ours)
        ),
        f"{_PROBING} less global attention in a DeiT that was distilled from a CNN than in one "
        "that was not.",
    ),
)
_ABOUT_INFORMATION = (
    Claim(
        "late_attention_does_not_collapse",
        "Late attention does not collapse",
        "Park et al. 2023",
        attending,
        share(
            "share of late attentions",
            "The attentions of the last third count: an attention is in favour if the mean over "
            f"its heads is above half of the mean over all attentions of the network. {_THIRDS}",
            lambda points: _late_attention_excess(
                _means_over_heads(points, "nmi"), lambda means: means["nmi"], 0.5
            ),
        ),
        "Not in the paper: Park et al. 2023 find that attention does not collapse in late blocks "
        "of supervised networks, but does in contrastive ones.",
    ),
)


def _sort_heads(rows: pd.DataFrame, _: pd.DataFrame) -> pd.DataFrame:
    return rows.sort_values(["attention", "head"], ignore_index=True)


CLAIMS_ATTENTION_DISTANCE = Evidence(
    "attention", _ABOUT_DISTANCE, _sort_heads, _published_attention
)
CLAIMS_ATTENTION_NMI = Evidence("attention", _ABOUT_INFORMATION, _sort_heads, _published_attention)

_MASKED = "Images beside which a mask of their subject lies count"
_SUBJECT = f"{_MASKED}, and the heads that the figure shows."


def _head_maps_with_mask(rows: pd.DataFrame, _: pd.DataFrame) -> pd.DataFrame:
    heads = rows[(rows["shows"] == "heads") & rows["on_subject"].notna()]
    return heads.sort_values(["image", "head"], ignore_index=True)


def _excess_over_even_map(maps: Points) -> Array:
    return np.subtract(maps["on_subject"], maps["subject"])


def _difference_on_subject(*both: Points) -> Found | None:
    one, other = (maps["on_subject"].mean(axis=1) if len(maps) else None for maps in both)
    return difference(one, other)


CLAIMS_ATTENTION_HEADS = Evidence(
    "attention_maps",
    (
        Claim(
            "heads_look_at_the_subject",
            "Heads look at the subject",
            "Caron et al. 2021",
            attending,
            share(
                "share of heads",
                "A head is in favour if a larger share of its map is on the subject than of an "
                f"even map, which is the share of the subject in the image. {_SUBJECT}",
                _excess_over_even_map,
            ),
            "Not in the paper: Caron et al. 2021 find that the heads of the last block of a "
            "ViT that was trained by DINO show the objects of an image.",
        ),
        Claim(
            "self_supervised_heads_show_objects",
            "Self-supervision makes heads look at the subject more",
            "Gosthipaty and Paul 2022",
            named_in("pretraining.self_supervision"),
            Statistic(
                "difference of shares",
                "The value is the mean share of a map that is on the subject, over heads and "
                f"images, of the first model minus that of the second. {_SUBJECT} "
                "`pretraining` of a model says which models are compared.",
                _difference_on_subject,
            ),
            "Not in the paper: Gosthipaty and Paul 2022 (Probing ViTs), as Caron et al. 2021, "
            "find that the heads of DINO show objects better than those of supervised ViTs.",
        ),
    ),
    _head_maps_with_mask,
)

CLAIMS_ATTENTION_ROLLOUT = Evidence(
    "attention_rollout",
    (
        Claim(
            "rollout_looks_at_the_subject",
            "Rollout looks at the subject",
            "Gosthipaty and Paul 2022",
            attending,
            share(
                "share of images",
                "An image is in favour if a larger share of its rollout is on the subject than of "
                f"an even one, which is the share of the subject in the image. {_MASKED}.",
                _excess_over_even_map,
            ),
            f"{_PROBING} the rollout of a ViT on the salient parts of an image.",
        ),
        Claim(
            "augmentation_rolls_out_on_the_subject",
            "Augmentation makes rollout look at the subject more",
            "Gosthipaty and Paul 2022",
            named_in("pretraining.augmentation"),
            Statistic(
                "difference of shares",
                "The value is the mean share of a rollout that is on the subject, over images, of "
                f"the first model minus that of the second. {_MASKED}. `pretraining` of a model "
                "says which models are compared.",
                _difference_on_subject,
            ),
            f"{_PROBING} that DeiT has the best rollout, likely due to its augmentation.",
        ),
    ),
    lambda rows, _: rows[rows["on_subject"].notna()].sort_values("image", ignore_index=True),
)

CLAIMS_ATTENTION_LOW_PASS = Evidence(
    "attention_low_pass",
    (
        Claim(
            "heads_are_low_pass_filters",
            "Heads lose some of what is not the mean token",
            "Wang et al. 2022",
            attending,
            share(
                "share of heads",
                "A head is in favour if what is not the mean token has a smaller norm in its "
                "output than in its values, on average over images. Its bound may be above "
                "one, so that this need not be.",
                lambda heads: log_ratio(np.ones(1), heads["let_through"]),
            ),
            "Not in the paper: Wang et al. 2022 show that attention is a low-pass filter.",
        ),
    ),
    lambda rows, _: rows[rows["head"].notna()],
)
