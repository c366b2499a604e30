"""Claims that compare one number of two models: shape bias, and accuracy on corrupted images."""

import pandas as pd

from vitscope.claims.basis import Basis, RowsOf
from vitscope.claims.claim import (
    Claim,
    Finding,
    apart,
    attention_against_convolution,
    hybrid_against_convolution,
)

_SHAPE_RULE = (
    "The paper infers this from Fig. 2b (Section 3) and has no such figure. The value is the shape "
    "bias of the model named first minus that of the convolutional one; the claim holds where it "
    "is above zero. The 95 % intervals are of each model alone, though both classify the same "
    "images: where they overlap, there may be a difference all the same."
)
_ROBUSTNESS_RULE = (
    "The paper's Fig. 12b, where Alter-ResNet is more robust than ResNet; of pure transformers it "
    "shows the opposite, so they have no such claim. The value is the mean corruption error of the "
    "convolutional model minus that of the model named first; the claim holds where it is above "
    "zero. It has no interval: a small difference may be chance."
)


def _one(points: pd.DataFrame, column: str) -> float | None:
    values = points[column].dropna()
    return float(values.iloc[0]) if len(values) else None


def _difference(ours: float | None, theirs: float | None) -> float | None:
    return None if ours is None or theirs is None else ours - theirs


def more_shape_biased(ours: pd.DataFrame, theirs: pd.DataFrame) -> Finding | None:
    """Find by how much the first model has the larger shape bias."""
    value = _difference(_one(ours, "shape_bias"), _one(theirs, "shape_bias"))
    return None if value is None else Finding(value, apart=apart(ours, theirs))


def smaller_error(ours: pd.DataFrame, theirs: pd.DataFrame) -> Finding | None:
    """Find by how much the first model has the smaller mean corruption error."""
    value = _difference(_one(theirs, "error"), _one(ours, "error"))
    return None if value is None else Finding(value)


def _shape_bias(rows: RowsOf) -> pd.DataFrame:
    table = rows("shape_texture")
    return table[table["class_name"] == "all"]


def _mean_error(rows: RowsOf) -> pd.DataFrame:
    table = rows("corruption_error")
    return table[table["corruption"] == "mean"]


SHAPE = Basis(
    "shape_texture",
    (
        Claim(
            "msa_goes_by_shape",
            "MSAs go by shape more than Convs do",
            "Section 3",
            "difference of shape bias",
            _SHAPE_RULE,
            attention_against_convolution,
            more_shape_biased,
            holds_above=0,
        ),
    ),
    _shape_bias,
)
ROBUSTNESS = Basis(
    "corruption_error",
    (
        Claim(
            "msa_makes_convs_robust",
            "Convs with MSAs among them withstand corruptions better than Convs alone",
            "Fig. 12b",
            "difference of mean corruption error",
            _ROBUSTNESS_RULE,
            hybrid_against_convolution,
            smaller_error,
            holds_above=0,
        ),
    ),
    _mean_error,
)
