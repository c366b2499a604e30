import pandas as pd

from vitscope.claims.claim import Claim, Evidence, attention_against_convolution, value_in_row
from vitscope.claims.statistics import larger

_WHY = (
    "Not in the paper: Naseer et al. 2021 find that vision transformers {found}. The accuracy kept "
    "is the mean accuracy over all {views}, divided by the accuracy on the images as they are, "
    "whatever that is."
)
_KEEPS_MORE = larger("mean_kept", "accuracy kept")

CLAIMS_OCCLUSION = Evidence(
    "occlusion",
    (
        Claim(
            "msa_withstands_occlusion",
            "MSAs withstand occlusion better than Convs do",
            "Naseer et al. 2021",
            attention_against_convolution,
            _KEEPS_MORE,
            _WHY.format(
                found="withstand occlusion better than CNNs",
                views="shares of patches that are dropped",
            ),
        ),
    ),
    value_in_row("mean_kept", "change", "dropped"),
    # A curve published for a few shares does not give the mean over all.
    lambda _: pd.DataFrame(columns=["measure", "value"]),
)

CLAIMS_SHUFFLING = Evidence(
    "occlusion",
    (
        Claim(
            "msa_withstands_shuffling",
            "MSAs withstand shuffling of patches better than Convs do",
            "Naseer et al. 2021",
            attention_against_convolution,
            _KEEPS_MORE,
            _WHY.format(
                found="keep their accuracy better than CNNs where the spatial structure of "
                "images is disturbed",
                views="grids whose patches are shuffled",
            ),
        ),
    ),
    value_in_row("mean_kept", "change", "shuffled"),
)
