"""The claim that attention is a low-pass filter."""

from vitscope.claims.claim import Claim, Evidence, attending
from vitscope.claims.statistics import share

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
                lambda heads: 1 - heads["let_through"],
            ),
            "Not in the paper: Wang et al. 2022 show that attention is a low-pass filter.",
        ),
    ),
    lambda rows, _: rows[rows["head"].notna()],
)
