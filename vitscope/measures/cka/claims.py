"""The claim that a stage is a block of similar feature maps. Fig. 10a."""

import pandas as pd

from vitscope.claims.basis import Basis, RowsOf
from vitscope.claims.claim import Claim, Finding, every_model

_RULE = (
    "The paper's Fig. 10a. The value is the mean CKA of two cut points of one stage minus that of "
    "two of different stages, where both pairs are equally far apart, averaged over distances; the "
    "claim holds where it is above zero. The stem is left out. A model of one stage has no such "
    "claim."
)


def within_over_between(pairs: pd.DataFrame) -> Finding | None:
    """Find by how much pairs within a stage are more similar than equally distant ones between."""
    # Feature maps that are near each other are alike anyway: only equal distances compare.
    means = pairs.groupby(["distance", "within"])["cka"].mean().unstack()
    if not {True, False} <= set(means.columns):
        return None
    differences = (means[True] - means[False]).dropna()
    return Finding(float(differences.mean())) if len(differences) else None


def _measured(rows: RowsOf) -> pd.DataFrame:
    stage = rows("blocks").set_index("index")["stage"]
    pairs = rows("cka")
    pairs = pairs.assign(
        distance=pairs["other_index"] - pairs["index"],
        stage=pairs["index"].map(stage),
        other_stage=pairs["other_index"].map(stage),
    )
    pairs = pairs[(pairs["distance"] > 0) & (pairs["stage"] > 0) & pairs["cka"].notna()]
    return pairs.assign(within=pairs["stage"] == pairs["other_stage"]).reset_index(drop=True)


SIMILARITY = Basis(
    "cka",
    (
        Claim(
            "stages_are_blocks",
            "Feature maps are more similar within a stage than across stages",
            "Fig. 10a",
            "difference of CKA",
            _RULE,
            every_model,
            within_over_between,
            holds_above=0,
        ),
    ),
    _measured,
)
