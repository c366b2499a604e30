"""Claims about attention: how far heads look, and whether they look at anything of their own."""

from typing import Any

import pandas as pd

from vitscope.claims.alike import pretrained_by
from vitscope.claims.claim import (
    Evidence,
    Finding,
    attending,
    claim,
    rank_correlation,
    share,
)

_DISTANCE = "distance_renormalized"
_PLAIN = (
    "Each attention of the first model is compared with the one of the same number of the second; "
    "it is in favour if the mean distance of its heads is {}. The distance is the one that is not "
    "renormalized, as in that article. `pretraining` of a model says which models are compared."
)
_THIRDS = (
    "The first third of a network has the attentions with a normalized depth of at most a third, "
    "the last third those with at least two thirds."
)


def _published(points: pd.DataFrame) -> pd.DataFrame:
    """Return published means of the heads of each block of a ViT as points that are counted."""
    names = {
        "block": "attention",
        "attention_distance_px": _DISTANCE,
        "attention_nmi": "nmi",
    }
    # Behind an MSA and an MLP a block, the MSA of a block is one half of it before its end.
    depth = (points["block"] + 0.5) / len(points)
    missing = pd.Series([None] * len(points), dtype="Int32")
    unknown = dict.fromkeys(("distance_uniform", "distance_anywhere"), float("nan"))
    rest: dict[str, Any] = {"head": missing, "heads": 1, "windows": 1, **unknown}
    found = points.rename(columns=names).assign(depth=depth, **rest)
    # A file of one of the two says nothing of the other.
    return found.reindex(columns=[*found.columns.union([_DISTANCE, "distance", "nmi"])])


def _heads(points: pd.DataFrame) -> pd.DataFrame:
    """Return the heads that have a distance, with its share of the uniform distance."""
    heads = points[points["head"].notna() & points[_DISTANCE].notna()]
    return heads.assign(reach=heads[_DISTANCE] / heads["distance_uniform"])


@claim(
    "Early heads look near and far, late ones alike",
    "Dosovitskiy et al. 2021",
    "difference of spreads",
    attending,
    more=_THIRDS,
    holds_above=0,
)
def early_heads_look_near_and_far(points: pd.DataFrame) -> Finding | None:
    """Not in the paper: Dosovitskiy et al. 2021 find heads with small and heads with large
    distances side by side in the first blocks of a ViT, and only large distances in the last. The
    spread of an attention is the largest minus the smallest distance of its heads, divided by the
    distance of queries that attend to all keys equally. The value is the mean spread of the first
    third minus the mean spread of the last third; the claim holds if it is above zero.
    """
    heads = _heads(points)
    several = heads[heads["heads"] > 1].groupby("attention")
    spreads = several["reach"].max() - several["reach"].min()
    depths = several["depth"].first()
    first, last = spreads[depths <= 1 / 3], spreads[depths >= 2 / 3]
    if first.empty or last.empty:
        return None
    return Finding(float(first.mean() - last.mean()))


@claim("Late heads look far", "Raghu et al. 2021", "share of late heads", attending, more=_THIRDS)
def late_heads_look_far(points: pd.DataFrame) -> Finding | None:
    """Not in the paper: Raghu et al. 2021 find that heads in the last blocks of a ViT look far. The
    heads of the last third count: a head is in favour if its distance, divided by the distance of
    queries that attend to all keys equally, is above the mean over all heads of the network.
    """
    heads = _heads(points)
    last = heads[heads["depth"] >= 2 / 3]
    return share(last["reach"] > heads["reach"].mean())


@claim(
    "Attention looks farther with depth",
    "Dosovitskiy et al. 2021",
    "rank correlation of distance and depth",
    attending,
    holds_above=0,
)
def distance_grows(points: pd.DataFrame) -> Finding | None:
    """Not in the paper: Dosovitskiy et al. 2021 find that the distance of attention grows with
    depth. The value is the rank correlation (Spearman) between depth and the mean distance of the
    heads of an attention, in pixels; the claim holds if it is above zero.
    """
    means = points[points["head"].isna()].dropna(subset=_DISTANCE)
    return rank_correlation(means["depth"], means[_DISTANCE])


@claim(
    "Windows bound how far attention looks",
    "Liu et al. 2021",
    "share of heads in windows",
    attending,
)
def windows_bound_distance(points: pd.DataFrame) -> Finding | None:
    """Not in the paper: Liu et al. 2021 restrict attention to windows. Heads of attention with
    several windows count: a head is in favour if its distance is below the distance of queries that
    attend equally to the whole image.
    """
    heads = _heads(points)
    within = heads[heads["windows"] > 1]
    return share(within[_DISTANCE] < within["distance_anywhere"])


def _count_farther(ours: pd.DataFrame, theirs: pd.DataFrame) -> Finding | None:
    """Count the attentions that look farther than those of the same number of another model."""
    means = (each[each["head"].isna()].set_index("attention") for each in (ours, theirs))
    our, their = (each["distance"].dropna() for each in means)
    both = our.index.intersection(their.index)
    return share(our[both] > their[both])


@claim(
    "Pretraining on more images makes attention look farther",
    "Gosthipaty and Paul 2022",
    "share of attentions",
    pretrained_by("more_images"),
    more=_PLAIN.format("larger"),
)
def more_images_look_farther(ours: pd.DataFrame, theirs: pd.DataFrame) -> Finding | None:
    """Not in the paper: Gosthipaty and Paul 2022 (Probing ViTs) find more global attention in a
    ViT that was pretrained on ImageNet-21k than in one that was trained on ImageNet-1k alone.
    """
    return _count_farther(ours, theirs)


@claim(
    "Distillation from a CNN makes attention look less far",
    "Gosthipaty and Paul 2022",
    "share of attentions",
    pretrained_by("distillation"),
    more=_PLAIN.format("smaller"),
)
def distillation_looks_nearer(ours: pd.DataFrame, theirs: pd.DataFrame) -> Finding | None:
    """Not in the paper: Gosthipaty and Paul 2022 (Probing ViTs) find less global attention in a
    DeiT that was distilled from a CNN than in one that was not.
    """
    return _count_farther(theirs, ours)


@claim(
    "Late attention does not collapse",
    "Park et al. 2023",
    "share of late attentions",
    attending,
    more=_THIRDS,
)
def late_attention_does_not_collapse(points: pd.DataFrame) -> Finding | None:
    """Not in the paper: Park et al. 2023 find that attention does not collapse in late blocks of
    supervised networks, but does in contrastive ones. The attentions of the last third count: an
    attention is in favour if the mean over its heads is at least half of the mean over all
    attentions of the network.
    """
    means = points[points["head"].isna()].dropna(subset="nmi")
    last = means[means["depth"] >= 2 / 3]
    return share(last["nmi"] >= means["nmi"].mean() / 2)


CLAIMS = {
    "attention_distance": Evidence(
        "attention",
        (
            early_heads_look_near_and_far,
            late_heads_look_far,
            distance_grows,
            windows_bound_distance,
            more_images_look_farther,
            distillation_looks_nearer,
        ),
        lambda rows, _: rows.sort_values(["attention", "head"], ignore_index=True),
        _published,
    ),
    "attention_nmi": Evidence(
        "attention",
        (late_attention_does_not_collapse,),
        lambda rows, _: rows.sort_values(["attention", "head"], ignore_index=True),
        _published,
    ),
}
