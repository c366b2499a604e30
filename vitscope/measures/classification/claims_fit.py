"""Claims about how well models of weak inductive bias fit the training data, and err.

Fig. 5, of models with and without Convs, and Fig. 7, of local and of global attention.
"""

import pandas as pd

from vitscope.claims.claim import Claim, KindsOf, Subject, attending, convolutional
from vitscope.claims.comparing import larger, smaller
from vitscope.claims.evidence import Evidence
from vitscope.measures.classification.table_fit import TABLE

_OF_BIAS = (
    "The paper's Fig. 5. The value is the training NLL, or the test error in percentage points, "
    "of the first model, which has no Convs, minus the value of the convolutional model; the "
    "claim holds if it is above zero. The 95 % interval of a difference of errors is computed "
    "from the intervals of both models, and is too wide, since both classify the same images. The "
    "NLL has no interval: a small difference may be chance."
)

_OF_WINDOWS = (
    "The paper's Fig. 7. The last model of the figure is the one with global attention. The value "
    "is its training NLL, or its test error in percentage points, minus the value of the first "
    "model, which has a smaller window; the claim holds if it is above zero. The 95 % interval of "
    "a difference of errors is computed from the intervals of both models, and is too wide, since "
    "both classify the same images. The NLL has no interval, and each model was trained once: a "
    "small difference may be chance."
)


def _without_against_convolution(kinds_of: KindsOf) -> list[Subject]:
    """Pair each model that has no Convs with each convolutional one."""
    without = [model for model, kinds in kinds_of.items() if "conv" not in kinds]
    return [(model, *other) for model in without for other in convolutional(kinds_of)]


def _local_against_global(kinds_of: KindsOf) -> list[Subject]:
    """Pair each model that has MSAs with the last one."""
    *local, whole = attending(kinds_of) or [()]
    return [(*each, *whole) for each in local]


def _published(points: pd.DataFrame) -> pd.DataFrame:
    return points.rename(columns={"metric": "measure"})


def _measured(rows: pd.DataFrame, _blocks: pd.DataFrame) -> pd.DataFrame:
    return _published(rows)


CLAIMS = {
    "fit": Evidence(
        TABLE,
        (
            Claim(
                "weak_bias_fits_worse",
                "A model of weaker inductive bias has the higher training loss",
                "Fig. 5",
                "difference of training NLL",
                _OF_BIAS,
                _without_against_convolution,
                larger("nll_train"),
                holds_above=0,
            ),
            Claim(
                "weak_bias_errs_more",
                "A model of weaker inductive bias has the higher test error",
                "Fig. 5",
                "difference of test error",
                _OF_BIAS,
                _without_against_convolution,
                larger("error_percent"),
                holds_above=0,
            ),
        ),
        _measured,
        _published,
    ),
    "fit_by_window": Evidence(
        TABLE,
        (
            Claim(
                "local_attention_fits_better",
                "Local attention has a lower training loss than global attention",
                "Fig. 7",
                "difference of training NLL",
                _OF_WINDOWS,
                _local_against_global,
                smaller("nll_train"),
                holds_above=0,
            ),
            Claim(
                "local_attention_errs_less",
                "Local attention has a lower test error than global attention",
                "Fig. 7",
                "difference of test error",
                _OF_WINDOWS,
                _local_against_global,
                smaller("error_percent"),
                holds_above=0,
            ),
        ),
        _measured,
        _published,
    ),
}
