"""Claims about noise of one frequency: which model loses more accuracy by it. Fig. 2b."""

import pandas as pd

from vitscope.claims.claim import Claim, Finding, attention_against_convolution, share
from vitscope.claims.evidence import Curve, Evidence
from vitscope.measures.frequency_noise.table import TABLE

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


def _withstands_high(ours: pd.DataFrame, theirs: pd.DataFrame) -> Finding | None:
    """Count the high frequencies at which the first model loses less accuracy."""
    both = _both(ours, theirs).query(f"frequency > {_MIDDLE}")
    return share(both["change"] > both["change_versus"])


def _suffers_low(ours: pd.DataFrame, theirs: pd.DataFrame) -> Finding | None:
    """Count the low frequencies at which the first model loses more accuracy."""
    both = _both(ours, theirs).query(f"frequency < {_MIDDLE}")
    return share(both["change"] < both["change_versus"])


def _measured(rows: pd.DataFrame, _blocks: pd.DataFrame) -> pd.DataFrame:
    return rows[["frequency", "change"]].sort_values("frequency", ignore_index=True)


CLAIMS = {
    "frequency_noise": Evidence(
        TABLE,
        (
            Claim(
                "msa_withstands_high_frequency_noise",
                "MSAs withstand noise of high frequency better than Convs do",
                "Fig. 2b",
                "share of frequencies above 0.5 pi",
                _RULE,
                attention_against_convolution,
                _withstands_high,
            ),
            Claim(
                "conv_withstands_low_frequency_noise",
                "Convs withstand noise of low frequency better than MSAs do",
                "Fig. 2b",
                "share of frequencies below 0.5 pi",
                _RULE,
                attention_against_convolution,
                _suffers_low,
            ),
        ),
        _measured,
        curve=Curve("frequency", "change"),
    )
}
