"""The claims that attention goes by shape more than convolution does, and this by texture."""

import numpy as np
import pandas as pd

from vitscope.claims.claim import (
    Claim,
    Evidence,
    attention_against_convolution,
    convolutional,
    value_in_row,
)
from vitscope.claims.points import Points
from vitscope.claims.statistics import Found, Statistic, larger, one_value, value_of
from vitscope.measures.classification.decisions import count_decisions, letters_of, shape_share
from vitscope.measures.columns import RESAMPLED
from vitscope.measures.intervals import bootstrap_means

# Of published decisions; all are of the same images, and resampled alike.
RESAMPLES = 2000


def _published(points: pd.DataFrame) -> pd.DataFrame:
    """Return the shape bias of published decisions as a point that is counted."""
    letters = letters_of(points["decisions"])
    by_image = np.stack([(letters == cue).mean(axis=0) for cue in "st"], axis=1)
    resampled = shape_share(bootstrap_means(by_image, RESAMPLES, 0))
    value = count_decisions(letters)["shape_bias"].iloc[0]
    return pd.DataFrame(
        {"measure": ["shape_bias"], "value": [value], f"value{RESAMPLED}": [resampled]}
    )


def _texture_over_shape(points: Points) -> Found | None:
    bias = one_value(points, "shape_bias")
    return None if bias is None else value_of(1 - 2 * bias)


CLAIMS_SHAPE_TEXTURE = Evidence(
    "shape_texture",
    (
        Claim(
            "msa_goes_by_shape",
            "MSAs go by shape more than Convs do",
            "Section 3",
            attention_against_convolution,
            larger("shape_bias", "shape bias"),
            "The paper infers this from Fig. 2b (Section 3) and has no such figure.",
        ),
        Claim(
            "convs_go_by_texture",
            "Convs go by texture",
            "Geirhos et al. (2019), Fig. 4",
            convolutional,
            Statistic(
                "difference of the shares of texture and of shape in decisions by either",
                "The value is the share of texture in decisions for shape or texture minus "
                "that of shape, which is the shape bias.",
                _texture_over_shape,
            ),
            "The claim of an earlier paper, of networks trained on ImageNet and its "
            "cue-conflict stimuli.",
        ),
    ),
    value_in_row("shape_bias", "class_name", "all"),
    _published,
)
