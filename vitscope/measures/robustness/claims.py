import pandas as pd

from vitscope.claims.claim import (
    AVERAGED,
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

_WHY = (
    "The paper's Fig. 12a and 12b. The second model is the first one without its MSAs "
    "(`attention`), of the same training."
)
_ERRORS = "clean_error", "error"


def _published_errors(points: pd.DataFrame) -> pd.DataFrame:
    shares = points[["accuracy", "robustness"]].iloc[0] / 100
    return pd.DataFrame({"measure": _ERRORS, "value": (1 - shares).to_list()})


CLAIMS_ROBUSTNESS_BY_ACCURACY = Evidence(
    "corruption_error",
    (
        Claim(
            "alternet_errs_less",
            "AlterNet has a lower test error than its CNN",
            "Fig. 12",
            alternet_against_its_cnn,
            smaller("clean_error", "test error"),
            f"{_WHY} The test error is the share of wrong predictions on images as they are.",
        ),
        Claim(
            "alternet_withstands_corruptions",
            "AlterNet withstands corruptions better than its CNN",
            "Fig. 12",
            alternet_against_its_cnn,
            smaller("error", "mean corruption error"),
            f"{_WHY} The robustness that the paper shows is taken for one minus the mean "
            "corruption error.",
        ),
    ),
    lambda rows, blocks: pd.concat(
        value_in_row(each, "corruption", MEAN)(rows, blocks) for each in _ERRORS
    ),
    _published_errors,
)
