"""Claims about how well models of weak inductive bias fit the training data, and err. Fig. 5."""

import pandas as pd

from vitscope.claims.claim import Claim, KindsOf, Subject, convolutional
from vitscope.claims.comparing import larger
from vitscope.claims.evidence import Evidence
from vitscope.measures.fit.table import TABLE

_RULE = (
    "The paper's Fig. 5. The value is the training NLL, or the test error in percentage points, of "
    "the model named first, which has no Convs, minus that of the convolutional one; the claim "
    "holds where it is above zero. The 95 % intervals of errors are of each model alone, though "
    "both classify the same images: where they overlap, there may be a difference all the same. "
    "The NLL has no interval: a small difference may be chance."
)


def _without_against_convolution(kinds_of: KindsOf) -> list[Subject]:
    """Pair each model that has no Convs with each convolutional one."""
    without = [model for model, kinds in kinds_of.items() if "conv" not in kinds]
    return [(model, *other) for model in without for other in convolutional(kinds_of)]


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
                _RULE,
                _without_against_convolution,
                larger("nll_train"),
                holds_above=0,
            ),
            Claim(
                "weak_bias_errs_more",
                "A model of weaker inductive bias has the higher test error",
                "Fig. 5",
                "difference of test error",
                _RULE,
                _without_against_convolution,
                larger("error_percent"),
                holds_above=0,
            ),
        ),
        _measured,
        _published,
    )
}
