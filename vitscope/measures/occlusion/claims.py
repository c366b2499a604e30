"""Claims that attention keeps more of its accuracy where patches of images are changed."""

from functools import partial

import pandas as pd

from vitscope.claims.claim import Claim, Evidence, attention_against_convolution
from vitscope.claims.comparing import larger

_RULE = (
    "Not in the paper: {finding} The value is how much of its accuracy the first model keeps, "
    "minus how much the convolutional model keeps: the mean accuracy over all {views}, divided by "
    "the accuracy on the images as they are, whatever that is. The claim holds if it is above "
    "zero. Its 95 % interval is computed from the intervals of both models, and is too wide, since "
    "both classify the same images."
)
_DROPPED = _RULE.format(
    finding="Naseer et al. 2021 find that vision transformers withstand occlusion better than "
    "CNNs.",
    views="shares of patches that are dropped",
)
_SHUFFLED = _RULE.format(
    finding="Naseer et al. 2021 find that vision transformers keep their accuracy better than CNNs "
    "where the spatial structure of images is disturbed.",
    views="grids whose patches are shuffled",
)


def _measured(rows: pd.DataFrame, _blocks: pd.DataFrame) -> pd.DataFrame:
    of_changes = rows.drop_duplicates("change")
    return pd.DataFrame(
        {
            "measure": of_changes["change"],
            "value": of_changes["mean_kept"],
            "ci_low": of_changes["kept_low"],
            "ci_high": of_changes["kept_high"],
        }
    )


def _published(_points: pd.DataFrame) -> pd.DataFrame:
    """Return no points: of a few shares, no mean over all is known."""
    return pd.DataFrame(columns=["measure", "value"])


_claim = partial(
    Claim,
    source="Naseer et al. 2021",
    measure="difference of accuracy kept",
    about=attention_against_convolution,
    holds_above=0,
)

CLAIMS = {
    "occlusion": Evidence(
        "occlusion",
        (
            _claim(
                "msa_withstands_occlusion",
                "MSAs withstand occlusion better than Convs do",
                rule=_DROPPED,
                find=larger("dropped"),
            ),
        ),
        _measured,
        _published,
    ),
    "shuffling": Evidence(
        "occlusion",
        (
            _claim(
                "msa_withstands_shuffling",
                "MSAs withstand shuffling of patches better than Convs do",
                rule=_SHUFFLED,
                find=larger("shuffled"),
            ),
        ),
        _measured,
    ),
}
