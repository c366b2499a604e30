from dataclasses import replace

import pandas as pd

from vitscope.claims.claim import Claim, Evidence, every_model
from vitscope.claims.intervals import RESAMPLED
from vitscope.claims.points import Points
from vitscope.claims.statistics import Found, Statistic, excess_of_alike_pairs, value_of
from vitscope.measures.cka.measure import LEVEL


def _cka_excess_within_stages(pairs: Points) -> Found | None:
    """Return the excess of CKA within stages, and its jackknife pseudo-value for each batch."""
    found = excess_of_alike_pairs(pairs, "cka", "within")
    if found is None:
        return None
    above = int((pairs.frame["p"] < LEVEL).sum())
    chance = f" ({above} of {len(pairs)} pairs of cut points are more similar than by chance)"
    whole, without = found.values[0], found.values[1:]
    count = len(without)
    found = value_of(whole, batches=count * whole - (count - 1) * without)
    return found and replace(found, beside=chance)


def _cka_pairs_in_stages(rows: pd.DataFrame, blocks: pd.DataFrame) -> pd.DataFrame:
    stage = blocks.set_index("index")["stage"]
    pairs = rows.assign(
        distance=rows["other_index"] - rows["index"],
        stage=rows["index"].map(stage),
        other_stage=rows["other_index"].map(stage),
    )
    pairs = pairs[(pairs["distance"] > 0) & (pairs["stage"] > 0) & pairs["cka"].notna()]
    # Use the CKA without each batch in turn in place of resamples.
    pairs = pairs.rename(columns={"cka_without": f"cka{RESAMPLED}"})
    return pairs.assign(within=pairs["stage"] == pairs["other_stage"]).reset_index(drop=True)


CLAIMS_CKA = Evidence(
    "cka",
    (
        Claim(
            "stages_are_blocks",
            "Feature maps are more similar within a stage than across stages",
            "Fig. 10a",
            every_model,
            Statistic(
                "difference of CKA",
                "The value is the mean CKA of two cut points in one stage minus the mean CKA "
                "of two cut points in different stages at the same distance, averaged over "
                "distances. The stem is left out. A model with one stage has no such claim. "
                "The interval is Student's over batches of images, of the pseudo-values of "
                "the jackknife; fewer than 20 batches have none.",
                _cka_excess_within_stages,
            ),
            "The paper's Fig. 10a.",
        ),
    ),
    _cka_pairs_in_stages,
)
