"""Claims about attention as a low-pass filter: what bounds it, and whether it is one."""

import pandas as pd

from vitscope.claims.claim import Evidence, Finding, attending, claim, share


@claim(
    "No head lets more through than its attention can",
    "Wang et al. 2022",
    "difference of bound and what passed, over the bound",
    attending,
    holds_above=0,
)
def heads_keep_the_bound(points: pd.DataFrame) -> Finding | None:
    """Not in the paper: Wang et al. 2022 bound how much of what is not the mean token a head lets
    through; here the bound is the spectral norm of its centred matrix of attention, which holds for
    any network whose attention has rows that sum to one. The value is the least share of the bound,
    over all heads, images and windows, that is left when what passed is taken from it; 0.00001 of
    the norm of the values is allowed for the rounding of float32, and nothing else. The claim holds
    if the value is above zero. Chance has no part in it: its interval is the value itself.
    """
    rooms = points["room"].dropna()
    if rooms.empty:
        return None
    least = float(rooms.min())
    return Finding(least, interval=(least, least))


@claim(
    "Heads lose some of what is not the mean token",
    "Wang et al. 2022",
    "share of heads",
    attending,
)
def heads_are_low_pass_filters(points: pd.DataFrame) -> Finding | None:
    """Not in the paper: Wang et al. 2022 show that attention is a low-pass filter. A head is in
    favour if what is not the mean token has a smaller norm in its output than in its values, on
    average over images. The bound itself may be above one, so that this need not be.
    """
    return share(points["let_through"].dropna() < 1)


CLAIMS = {
    "attention_low_pass": Evidence(
        "attention_low_pass",
        (heads_keep_the_bound, heads_are_low_pass_filters),
        lambda rows, _: rows[rows["head"].notna()],
    )
}
