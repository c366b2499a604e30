import numpy as np

from vitscope.claims.claim import Curve, Evidence, attention_against_convolution, claims_of
from vitscope.claims.points import Points
from vitscope.claims.statistics import Statistic, paired, share
from vitscope.files.arrays import Array

_WHY = (
    "The paper's Fig. 2b. Only both claims together, on high frequencies and on low ones, are that "
    "of the paper: a model that is weaker at all frequencies satisfies one of them."
)
_MIDDLE = 0.5


def _kept(ours: Points, theirs: Points, sign: int) -> Array:
    """Return how much less the first model loses above the middle, or how much more below it."""
    both, at_ours, at_theirs = np.intersect1d(
        ours["frequency"][0], theirs["frequency"][0], return_indices=True
    )
    first, second = paired(ours["change"][:, at_ours], theirs["change"][:, at_theirs])
    return sign * (first - second)[:, sign * (both - _MIDDLE) > 0]


def _loses(sign: int) -> Statistic:
    less, beyond = ("less", "above") if sign > 0 else ("more", "below")
    rule = (
        f"A frequency of the noise {beyond} {_MIDDLE} pi is in favour if the accuracy of the first "
        f"model falls by {less} than the accuracy of the convolutional model."
    )
    measure = f"share of frequencies {beyond} {_MIDDLE} pi"
    return share(measure, rule, lambda ours, theirs: _kept(ours, theirs, sign))


CLAIMS_FREQUENCY_NOISE = Evidence(
    "frequency_noise",
    claims_of(
        "Fig. 2b",
        attention_against_convolution,
        _WHY,
        (
            "msa_withstands_high_frequency_noise",
            "MSAs withstand noise of high frequency better than Convs do",
            _loses(1),
        ),
        (
            "conv_withstands_low_frequency_noise",
            "Convs withstand noise of low frequency better than MSAs do",
            _loses(-1),
        ),
    ),
    lambda rows, _: rows.sort_values("frequency", ignore_index=True),
    curve=Curve("frequency", "change"),
)
