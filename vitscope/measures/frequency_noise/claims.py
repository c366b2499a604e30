"""Claims about noise of one frequency: which model loses more accuracy by it. Fig. 2b."""

import pandas as pd

from vitscope.claims.claim import (
    Curve,
    Evidence,
    Finding,
    attention_against_convolution,
    claim,
    share,
)

_RULE = (
    "The paper's Fig. 2b. Frequencies of the noise above 0.5 pi (high) or below it (low) count: a "
    "frequency is in favour if the accuracy of the first model falls by less (high), or by more "
    "(low), than the accuracy of the convolutional model. 0.5 pi itself is neither. Only both "
    "claims together are the claim of the paper: a model that is weaker at all frequencies "
    "satisfies one of them."
)
_MIDDLE = 0.5


def _both(ours: pd.DataFrame, theirs: pd.DataFrame) -> pd.DataFrame:
    """Return the changes of two models at the frequencies that both have."""
    both = ours.merge(theirs, on="frequency", suffixes=("", "_versus"))
    return both.dropna(subset=["change", "change_versus"])


@claim(
    "MSAs withstand noise of high frequency better than Convs do",
    "Fig. 2b",
    "share of frequencies above 0.5 pi",
    attention_against_convolution,
    rule=_RULE,
)
def msa_withstands_high_frequency_noise(ours: pd.DataFrame, theirs: pd.DataFrame) -> Finding | None:
    """Count the high frequencies at which the first model loses less accuracy."""
    both = _both(ours, theirs).query(f"frequency > {_MIDDLE}")
    return share(both["change"] > both["change_versus"])


@claim(
    "Convs withstand noise of low frequency better than MSAs do",
    "Fig. 2b",
    "share of frequencies below 0.5 pi",
    attention_against_convolution,
    rule=_RULE,
)
def conv_withstands_low_frequency_noise(ours: pd.DataFrame, theirs: pd.DataFrame) -> Finding | None:
    """Count the low frequencies at which the first model loses more accuracy."""
    both = _both(ours, theirs).query(f"frequency < {_MIDDLE}")
    return share(both["change"] < both["change_versus"])


CLAIMS = {
    "frequency_noise": Evidence(
        "frequency_noise",
        (msa_withstands_high_frequency_noise, conv_withstands_low_frequency_noise),
        lambda rows, _: rows[["frequency", "change"]].sort_values("frequency", ignore_index=True),
        curve=Curve("frequency", "change"),
    )
}
