import pandas as pd

from vitscope.claims.claim import (
    AVERAGED,
    OWN_CNN,
    Claim,
    Evidence,
    alternet_against_its_cnn,
    averaging,
    hybrid_against_convolution,
    value_in_row,
)
from vitscope.claims.statistics import smaller
from vitscope.corruptions import MEAN

_ERRS_LESS = smaller("error", "mean corruption error")

CLAIMS_ROBUSTNESS = Evidence(
    "corruption_error",
    (
        Claim(
            "msa_makes_convs_robust",
            "Convs with MSAs among them withstand corruptions better than Convs alone",
            "Fig. 12b",
            hybrid_against_convolution,
            _ERRS_LESS,
            "The paper's Fig. 12b, where Alter-ResNet is more robust than ResNet; for pure "
            "transformers it shows the opposite, so they have no such claim.",
        ),
        Claim(
            "averaging_withstands_corruptions",
            "Averaging withstands corruptions better",
            "Park and Kim 2022",
            averaging,
            _ERRS_LESS,
            AVERAGED.format("are robust"),
        ),
    ),
    value_in_row("error", "corruption", MEAN),
)


def _published_errors(points: pd.DataFrame) -> pd.DataFrame:
    shares = points["robustness"].iloc[:1] / 100
    return pd.DataFrame({"measure": "error", "value": (1 - shares).to_list()})


CLAIMS_ROBUSTNESS_BY_ACCURACY = Evidence(
    "corruption_error",
    (
        Claim(
            "alternet_withstands_corruptions",
            "AlterNet withstands corruptions better than its CNN",
            "Fig. 12b",
            alternet_against_its_cnn,
            _ERRS_LESS,
            f"{OWN_CNN} The robustness that the paper shows is taken for one minus the mean "
            "corruption error.",
        ),
    ),
    value_in_row("error", "corruption", MEAN),
    _published_errors,
)
