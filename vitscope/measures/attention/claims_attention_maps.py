"""Claims about maps of attention: whether heads look at what an image is of."""

import pandas as pd

from vitscope.claims.alike import pretrained_by
from vitscope.claims.claim import Evidence, Finding, attending, claim, share

_SUBJECT = (
    "Images beside which a mask of their subject lies count, and the heads that the figure shows."
)


def _of_subjects(rows: pd.DataFrame, _: pd.DataFrame) -> pd.DataFrame:
    """Return the heads of images whose subject a mask shows."""
    heads = rows[(rows["shows"] == "heads") & rows["on_subject"].notna()]
    return heads.sort_values(["image", "head"], ignore_index=True)


@claim(
    "Heads look at the subject",
    "Caron et al. 2021",
    "share of heads",
    attending,
    more=_SUBJECT,
)
def heads_look_at_the_subject(points: pd.DataFrame) -> Finding | None:
    """Not in the paper: Caron et al. 2021 find that the heads of the last block of a ViT that was
    trained by DINO show the objects of an image. A head is in favour if a larger share of its map
    is on the subject than of an even map, which is the share of the subject in the image.
    """
    return share(points["on_subject"] > points["subject"])


@claim(
    "Self-supervision makes heads look at the subject more",
    "Gosthipaty and Paul 2022",
    "difference of shares",
    pretrained_by("self_supervision"),
    more=f"{_SUBJECT} `pretraining` of a model says which models are compared.",
    holds_above=0,
)
def self_supervised_heads_show_objects(ours: pd.DataFrame, theirs: pd.DataFrame) -> Finding | None:
    """Not in the paper: Gosthipaty and Paul 2022 (Probing ViTs), as Caron et al. 2021, find that
    the heads of DINO show objects better than those of supervised ViTs. The value is the mean share
    of a map that is on the subject, over heads and images, of the first model minus that of the
    second; the claim holds if it is above zero.
    """
    if ours.empty or theirs.empty:
        return None
    return Finding(float(ours["on_subject"].mean() - theirs["on_subject"].mean()))


CLAIMS = {
    "attention_heads": Evidence(
        "attention_maps",
        (heads_look_at_the_subject, self_supervised_heads_show_objects),
        _of_subjects,
    )
}
