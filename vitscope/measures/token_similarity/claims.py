"""Claims about oversmoothing: tokens become more alike with depth, and by which blocks."""

from vitscope.claims.claim import Claim, Evidence, attending, in_order
from vitscope.claims.statistics import changes_more, grows_with_depth

_VALUE = "similarity", "similarity of tokens"

CLAIMS_TOKEN_SIMILARITY = Evidence(
    "token_similarity",
    (
        Claim(
            "tokens_become_alike",
            "Tokens become more alike with depth",
            "Gong et al. 2021",
            attending,
            grows_with_depth(*_VALUE),
            "Not in the paper: Gong et al. 2021 and others find that the tokens of a vision "
            "transformer become more similar with depth (oversmoothing).",
        ),
        Claim(
            "msas_make_tokens_alike",
            "MSAs make tokens more alike than MLPs do",
            "Dong et al. 2021",
            attending,
            changes_more(*_VALUE, "msa", "mlp"),
            "Not in the paper: Dong et al. 2021 show that attention alone makes tokens "
            "similar, and that MLPs work against it.",
        ),
    ),
    in_order,
)
