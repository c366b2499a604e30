"""Claims about oversmoothing: the mean token takes over with depth, and by which blocks."""

from vitscope.claims.claim import Claim, Evidence, attending, in_order
from vitscope.claims.statistics import changes_more, grows_with_depth

_VALUE = "share", "share of the mean token in the energy of all tokens"

CLAIMS_MEAN_TOKEN = Evidence(
    "mean_token",
    (
        Claim(
            "mean_token_takes_over",
            "The mean token takes a larger share with depth",
            "Wang et al. 2022",
            attending,
            grows_with_depth(*_VALUE),
            "Not in the paper: Wang et al. 2022 find that the tokens of a vision transformer "
            "lose what is not in their mean with depth (oversmoothing).",
        ),
        Claim(
            "msas_raise_the_mean_token",
            "MSAs raise the share of the mean token more than MLPs do",
            "Wang et al. 2022",
            attending,
            changes_more(*_VALUE, "msa", "mlp"),
            "Not in the paper: Wang et al. 2022 show that attention is a low-pass filter, "
            "which alone would leave nothing but the mean token.",
        ),
    ),
    in_order,
)
