import pandas as pd

from vitscope.claims.claim import Claim, Evidence, attention_against_convolution_alike
from vitscope.claims.statistics import smaller


def _last_gap(rows: pd.DataFrame, _blocks: pd.DataFrame) -> pd.DataFrame:
    """Return a model's point: by how much the test loss exceeds that of training at the end."""
    last = rows.sort_values("epoch").iloc[[-1]]
    return last.assign(measure="gap", value=last["test_loss"] - last["loss"])


CLAIMS_TRAINING = Evidence(
    "learning_curves",
    (
        Claim(
            "msa_generalizes_better",
            "MSAs have a smaller gap between test and training loss than Convs",
            "abstract",
            attention_against_convolution_alike,
            smaller("gap", "gap between test and training loss at the end"),
            "The paper's abstract says that MSAs improve generalization. Training images are "
            "augmented and have smoothed and mixed targets, and test images have not, so a gap "
            "alone says nothing: only models whose training images are made alike, and are as "
            "many, are compared. One training has no interval.",
        ),
    ),
    _last_gap,
)
