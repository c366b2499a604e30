"""The claim that a stage is a block of similar feature maps. Fig. 10a."""

import pandas as pd

from vitscope.claims.claim import Claim, Finding, every_model
from vitscope.claims.evidence import Evidence
from vitscope.measures.cka.table import TABLE

_RULE = (
    "The paper's Fig. 10a. The value is the mean CKA of two cut points in one stage minus the "
    "mean CKA of two cut points in different stages at the same distance, averaged over "
    "distances; the claim holds if it is above zero. The stem is left out. A model with one stage "
    "has no such claim."
)


def within_over_between(pairs: pd.DataFrame) -> Finding | None:
    """Find by how much pairs of one stage are more similar than equally distant pairs of two."""
    # Feature maps that are near each other are alike anyway: only equal distances compare.
    means = pairs.groupby(["distance", "within"])["cka"].mean().unstack()
    if not {True, False} <= set(means.columns):
        return None
    differences = (means[True] - means[False]).dropna()
    return Finding(float(differences.mean())) if len(differences) else None


def _measured(rows: pd.DataFrame, blocks: pd.DataFrame) -> pd.DataFrame:
    stage = blocks.set_index("index")["stage"]
    pairs = rows.assign(
        distance=rows["other_index"] - rows["index"],
        stage=rows["index"].map(stage),
        other_stage=rows["other_index"].map(stage),
    )
    pairs = pairs[(pairs["distance"] > 0) & (pairs["stage"] > 0) & pairs["cka"].notna()]
    return pairs.assign(within=pairs["stage"] == pairs["other_stage"]).reset_index(drop=True)


CLAIMS = {
    "cka": Evidence(
        TABLE,
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
}
