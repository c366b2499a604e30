"""Claims about maps of attention: whether heads look at what an image is of."""

import pandas as pd

from vitscope.claims.alike import pretrained_by
from vitscope.claims.claim import Claim, Evidence, attending
from vitscope.claims.points import Points
from vitscope.claims.statistics import Found, Statistic, difference, share
from vitscope.files.arrays import Array

_SUBJECT = (
    "Images beside which a mask of their subject lies count, and the heads that the figure shows."
)


def _of_subjects(rows: pd.DataFrame, _: pd.DataFrame) -> pd.DataFrame:
    """Return the heads of images whose subject a mask shows."""
    heads = rows[(rows["shows"] == "heads") & rows["on_subject"].notna()]
    return heads.sort_values(["image", "head"], ignore_index=True)


def _on_subject(heads: Points) -> Array | None:
    return heads["on_subject"].mean(axis=1) if len(heads) else None


def _more_on_subject(ours: Points, theirs: Points) -> Found | None:
    return difference(_on_subject(ours), _on_subject(theirs))


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
                lambda heads: heads["on_subject"] - heads["subject"],
            ),
            "Not in the paper: Caron et al. 2021 find that the heads of the last block of a "
            "ViT that was trained by DINO show the objects of an image.",
        ),
        Claim(
            "self_supervised_heads_show_objects",
            "Self-supervision makes heads look at the subject more",
            "Gosthipaty and Paul 2022",
            pretrained_by("self_supervision"),
            Statistic(
                "difference of shares",
                "The value is the mean share of a map that is on the subject, over heads and "
                f"images, of the first model minus that of the second. {_SUBJECT} "
                "`pretraining` of a model says which models are compared.",
                _more_on_subject,
            ),
            "Not in the paper: Gosthipaty and Paul 2022 (Probing ViTs), as Caron et al. 2021, "
            "find that the heads of DINO show objects better than those of supervised ViTs.",
        ),
    ),
    _of_subjects,
)
