"""The claim that a stage is a block of similar feature maps. Fig. 10a."""

import pandas as pd

from vitscope.claims.claim import Evidence, Finding, claim, every_model, mean_excess


@claim(
    "Feature maps are more similar within a stage than across stages",
    "Fig. 10a",
    "difference of CKA",
    every_model,
    holds_above=0,
)
def stages_are_blocks(pairs: pd.DataFrame) -> Finding | None:
    """The paper's Fig. 10a. The value is the mean CKA of two cut points in one stage minus the mean
    CKA of two cut points in different stages at the same distance, averaged over distances; the
    claim holds if it is above zero. The stem is left out. A model with one stage has no such claim.
    """
    return mean_excess(pairs, "cka", "within")


def _measured(rows: pd.DataFrame, blocks: pd.DataFrame) -> pd.DataFrame:
    stage = blocks.set_index("index")["stage"]
    pairs = rows.assign(
        distance=rows["other_index"] - rows["index"],
        stage=rows["index"].map(stage),
        other_stage=rows["other_index"].map(stage),
    )
    pairs = pairs[(pairs["distance"] > 0) & (pairs["stage"] > 0) & pairs["cka"].notna()]
    return pairs.assign(within=pairs["stage"] == pairs["other_stage"]).reset_index(drop=True)


CLAIMS = {"cka": Evidence("cka", (stages_are_blocks,), _measured)}
