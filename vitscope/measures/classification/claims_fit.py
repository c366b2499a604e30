"""Claims about how well models of weak inductive bias fit the training data, and err.

Fig. 5, of models with and without Convs, and Fig. 7, of local and of global attention.
"""

from typing import Any

import numpy as np
import pandas as pd

from vitscope.claims.alike import local_against_global
from vitscope.claims.claim import Claim, Evidence, Models, Subject, convolutional
from vitscope.claims.statistics import larger, smaller
from vitscope.files.arrays import Array
from vitscope.measures.columns import RESAMPLED

# Of the error of a published network, which is known with its number of images and no more.
RESAMPLES = 2000

_NLL = "nll_train", "training NLL"
_ERROR = "error_percent", "test error"
_PUBLISHED = (
    "Errors are in percentage points. Two published errors are resampled independently, though "
    "they are of the same images, so that the interval of their difference is rather too wide."
)
_OF_BIAS = f"The paper's Fig. 5: the first model has no Convs, and the second no MSAs. {_PUBLISHED}"
_OF_WINDOWS = (
    "The paper's Fig. 7: the first model has a window of attention (`attention_window`), the "
    "second has none, and nothing else of their networks and trainings differs. " + _PUBLISHED
)


def _without_against_convolution(models: Models) -> list[Subject]:
    """Pair each model that has no Convs with each convolutional one."""
    without = [model for model, traits in models.items() if "conv" not in traits.kinds]
    return [(model, *other) for model in without for other in convolutional(models)]


def _measured(rows: pd.DataFrame, _blocks: pd.DataFrame | None = None) -> pd.DataFrame:
    return rows.rename(columns={"metric": "measure"})


def _published(points: pd.DataFrame) -> pd.DataFrame:
    """Return published points, with resamples of an error whose number of images is known."""
    resampled: dict[str, Any] = {
        f"value{RESAMPLED}": [
            _resample(share, images) if np.isfinite(images) else None
            for share, images in zip(points["value"] / 100, points["images"], strict=True)
        ]
    }
    return _measured(points).assign(**resampled)


def _resample(share: float, images: float) -> Array:
    # Networks that err on other counts of images have other seeds.
    wrong = np.random.default_rng(round(share * images)).binomial(int(images), share, RESAMPLES)
    resampled: Array = 100 * wrong / images
    return resampled


CLAIMS_FIT = Evidence(
    "fit",
    (
        Claim(
            "weak_bias_fits_worse",
            "A model of weaker inductive bias has the higher training loss",
            "Fig. 5",
            _without_against_convolution,
            larger(*_NLL),
            _OF_BIAS,
        ),
        Claim(
            "weak_bias_errs_more",
            "A model of weaker inductive bias has the higher test error",
            "Fig. 5",
            _without_against_convolution,
            larger(*_ERROR),
            _OF_BIAS,
        ),
    ),
    _measured,
    _published,
)

CLAIMS_FIT_BY_WINDOW = Evidence(
    "fit",
    (
        Claim(
            "local_attention_fits_better",
            "Local attention has a lower training loss than global attention",
            "Fig. 7",
            local_against_global,
            smaller(*_NLL),
            _OF_WINDOWS,
        ),
        Claim(
            "local_attention_errs_less",
            "Local attention has a lower test error than global attention",
            "Fig. 7",
            local_against_global,
            smaller(*_ERROR),
            _OF_WINDOWS,
        ),
    ),
    _measured,
    _published,
)
