"""Claims about how well models of weak inductive bias fit the training data, and err.

Fig. 5, of models with and without Convs, and Fig. 7, of local and of global attention.
"""

from functools import partial

import pandas as pd

from vitscope.claims.alike import local_against_global
from vitscope.claims.claim import Claim, Evidence, Models, Subject, convolutional
from vitscope.claims.comparing import larger, smaller

_OF_BIAS = (
    "The paper's Fig. 5. The value is the training NLL, or the test error in percentage points, "
    "of the first model, which has no Convs, minus the value of the convolutional model; the "
    "claim holds if it is above zero. The 95 % interval of a difference of errors is computed "
    "from the intervals of both models, and is too wide, since both classify the same images. The "
    "NLL has no interval: a small difference may be chance."
)

_OF_WINDOWS = (
    "The paper's Fig. 7. The first model has a window of attention (`attention_window`), the "
    "second has none, and nothing else of their networks and trainings differs. The value is the "
    "training NLL, or the test error in percentage points, of the second model minus that of the "
    "first; the claim holds if it is above zero. The 95 % interval of a difference of errors is "
    "computed from the intervals of both models, and is too wide, since both classify the same "
    "images. The NLL has no interval, and each model was trained once: a small difference may be "
    "chance."
)


def _without_against_convolution(models: Models) -> list[Subject]:
    """Pair each model that has no Convs with each convolutional one."""
    without = [model for model, traits in models.items() if "conv" not in traits.kinds]
    return [(model, *other) for model in without for other in convolutional(models)]


def _published(points: pd.DataFrame) -> pd.DataFrame:
    return points.rename(columns={"metric": "measure"})


_of_bias = partial(
    Claim, source="Fig. 5", rule=_OF_BIAS, about=_without_against_convolution, holds_above=0
)
_of_windows = partial(
    Claim, source="Fig. 7", rule=_OF_WINDOWS, about=local_against_global, holds_above=0
)

CLAIMS = {
    "fit": Evidence(
        "fit",
        (
            _of_bias(
                "weak_bias_fits_worse",
                "A model of weaker inductive bias has the higher training loss",
                measure="difference of training NLL",
                find=larger("nll_train"),
            ),
            _of_bias(
                "weak_bias_errs_more",
                "A model of weaker inductive bias has the higher test error",
                measure="difference of test error",
                find=larger("error_percent"),
            ),
        ),
        lambda rows, _: _published(rows),
        _published,
    ),
    "fit_by_window": Evidence(
        "fit",
        (
            _of_windows(
                "local_attention_fits_better",
                "Local attention has a lower training loss than global attention",
                measure="difference of training NLL",
                find=smaller("nll_train"),
            ),
            _of_windows(
                "local_attention_errs_less",
                "Local attention has a lower test error than global attention",
                measure="difference of test error",
                find=smaller("error_percent"),
            ),
        ),
        lambda rows, _: _published(rows),
        _published,
    ),
}
