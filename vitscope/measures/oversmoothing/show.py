from vitscope.claims.claim import Claim, Evidence, attending, in_order
from vitscope.claims.statistics import changes_more, grows_with_depth
from vitscope.drawing.axes import begin_at_zero
from vitscope.drawing.charts import Chart, Rows, Steps

plot_token_similarity = Chart(
    Rows("Cosine similarity of tokens", Steps("similarity"), scales="shared")
)
plot_mean_token = Chart(
    Rows("Share of the mean token", Steps("share"), scale=begin_at_zero, scales="shared")
)


_SIMILARITY = "similarity", "similarity of tokens"

CLAIMS_TOKEN_SIMILARITY = Evidence(
    "token_similarity",
    (
        Claim(
            "tokens_become_alike",
            "Tokens become more alike with depth",
            "Gong et al. 2021",
            attending,
            grows_with_depth(*_SIMILARITY),
            "Not in the paper: Gong et al. 2021 and others find that the tokens of a vision "
            "transformer become more similar with depth (oversmoothing).",
        ),
        Claim(
            "msas_make_tokens_alike",
            "MSAs make tokens more alike than MLPs do",
            "Dong et al. 2021",
            attending,
            changes_more(*_SIMILARITY, "msa", "mlp"),
            "Not in the paper: Dong et al. 2021 show that attention alone makes tokens "
            "similar, and that MLPs work against it.",
        ),
    ),
    in_order,
)

_SHARE = "share", "share of the mean token in the energy of all tokens"

CLAIMS_MEAN_TOKEN = Evidence(
    "mean_token",
    (
        Claim(
            "mean_token_takes_over",
            "The mean token takes a larger share with depth",
            "Wang et al. 2022",
            attending,
            grows_with_depth(*_SHARE),
            "Not in the paper: Wang et al. 2022 find that the tokens of a vision transformer "
            "lose what is not in their mean with depth (oversmoothing).",
        ),
        Claim(
            "msas_raise_the_mean_token",
            "MSAs raise the share of the mean token more than MLPs do",
            "Wang et al. 2022",
            attending,
            changes_more(*_SHARE, "msa", "mlp"),
            "Not in the paper: Wang et al. 2022 show that attention is a low-pass filter, "
            "which alone would leave nothing but the mean token.",
        ),
    ),
    in_order,
)
