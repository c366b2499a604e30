from typing import Any

import numpy as np
import pandas as pd

from vitscope.claims.claim import (
    Evidence,
    ScoredCurve,
    attention_against_convolution,
    make_claims,
    value_in_row,
)
from vitscope.claims.points import Points
from vitscope.claims.statistics import Statistic, larger, paired, share
from vitscope.files.arrays import Array

_WHY = (
    "The paper's Fig. 2b. Only both claims together, on high frequencies and on low ones, are that "
    "of the paper: a model that is weaker at all frequencies satisfies one of them."
)
_MIDDLE = 0.5


def _smaller_loss_from_noise(ours: Points, theirs: Points, sign: int) -> Array:
    """Return how much less accuracy the first model loses than the second, at each frequency.

    With a `sign` of 1, return this for frequencies above `_MIDDLE`; with -1, return for frequencies
    below it how much more the first model loses.
    """
    both, at_ours, at_theirs = np.intersect1d(
        ours["frequency"][0], theirs["frequency"][0], return_indices=True
    )
    first, second = paired(ours["change"][:, at_ours], theirs["change"][:, at_theirs])
    return sign * (first - second)[:, sign * (both - _MIDDLE) > 0]


def _loss_at_noise_frequencies(sign: int) -> Statistic:
    less, beyond = ("less", "above") if sign > 0 else ("more", "below")
    rule = (
        f"A frequency of the noise {beyond} {_MIDDLE} pi is in favour if the accuracy of the first "
        f"model falls by {less} than the accuracy of the convolutional model."
    )
    measure = f"share of frequencies {beyond} {_MIDDLE} pi"
    return share(measure, rule, lambda ours, theirs: _smaller_loss_from_noise(ours, theirs, sign))


CLAIMS_FREQUENCY_NOISE = Evidence(
    "frequency_noise",
    make_claims(
        "Fig. 2b",
        attention_against_convolution,
        _WHY,
        (
            "msa_withstands_high_frequency_noise",
            "MSAs withstand noise of high frequency better than Convs do",
            _loss_at_noise_frequencies(1),
        ),
        (
            "conv_withstands_low_frequency_noise",
            "Convs withstand noise of low frequency better than MSAs do",
            _loss_at_noise_frequencies(-1),
        ),
    ),
    lambda rows, _: rows.sort_values("frequency", ignore_index=True),
    curve=ScoredCurve("frequency", "change"),
)


def _evidence_on_disturbed_patches(
    kind: str, change: str, what: str, found: str, views: str, **more: Any
) -> Evidence:
    why = (
        f"Not in the paper: Naseer et al. 2021 find that vision transformers {found}. The accuracy "
        f"kept is the mean accuracy over all {views}, divided by the accuracy on the images as "
        "they are, whatever that is."
    )
    statement = f"MSAs withstand {what} better than Convs do"
    claim = (f"msa_withstands_{kind}", statement, larger("mean_kept", "accuracy kept"))
    claims = make_claims("Naseer et al. 2021", attention_against_convolution, why, claim)
    return Evidence("occlusion", claims, value_in_row("mean_kept", "change", change), **more)


CLAIMS_OCCLUSION = _evidence_on_disturbed_patches(
    "occlusion",
    "dropped",
    "occlusion",
    found="withstand occlusion better than CNNs",
    views="shares of patches that are dropped",
    # Use no published values: a curve of a few shares does not give the mean over all shares.
    published=lambda _: pd.DataFrame(columns=["measure", "value"]),
)
CLAIMS_SHUFFLING = _evidence_on_disturbed_patches(
    "shuffling",
    "shuffled",
    "shuffling of patches",
    found="keep their accuracy better than CNNs where the spatial structure of images is disturbed",
    views="grids whose patches are shuffled",
)
