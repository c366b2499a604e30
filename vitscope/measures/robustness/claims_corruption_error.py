"""Claims that AlterNet errs less than its CNN, on images as they are and corrupted. Fig. 12.

Their points are the two errors of a model.
"""

from functools import partial

import pandas as pd

from vitscope.claims.alike import alternet_against_its_cnn
from vitscope.claims.chance import known_share_interval
from vitscope.claims.claim import Claim, Evidence
from vitscope.claims.comparing import smaller
from vitscope.corruptions import MEAN

_RULE = (
    "The paper's Fig. 12a and 12b. The second model is the first one without its MSAs "
    "(`attention`), of the same training. The value is the share of wrong predictions of the "
    "second model minus that of the first, on images as they are, or the mean corruption error; "
    "the claim holds if it is above zero. Its 95 % interval is computed from the intervals of both "
    "models, and is too wide, since both classify the same images. The robustness that the paper "
    "shows is taken for one minus the mean corruption error."
)


def _measured(rows: pd.DataFrame, _blocks: pd.DataFrame) -> pd.DataFrame:
    row = rows[rows["corruption"] == MEAN].iloc[0]
    clean, images = row["clean_error"], int(row["images"])
    low, high = known_share_interval(clean, images)
    return pd.DataFrame(
        {
            "measure": ["clean_error", "error"],
            "value": [clean, row["error"]],
            "ci_low": [low, row["ci_low"]],
            "ci_high": [high, row["ci_high"]],
        }
    )


def _published(points: pd.DataFrame) -> pd.DataFrame:
    shares = points[["accuracy", "robustness"]].iloc[0] / 100
    return pd.DataFrame({"measure": ["clean_error", "error"], "value": (1 - shares).to_list()})


_claim = partial(Claim, source="Fig. 12", rule=_RULE, about=alternet_against_its_cnn, holds_above=0)

CLAIMS = {
    "robustness_by_accuracy": Evidence(
        "corruption_error",
        (
            _claim(
                "alternet_errs_less",
                "AlterNet has a lower test error than its CNN",
                measure="difference of test error",
                find=smaller("clean_error"),
            ),
            _claim(
                "alternet_withstands_corruptions",
                "AlterNet withstands corruptions better than its CNN",
                measure="difference of mean corruption error",
                find=smaller("error"),
            ),
        ),
        _measured,
        _published,
    )
}
