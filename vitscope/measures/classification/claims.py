from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from vitscope.claims.claim import (
    OTHER_MIXING,
    OWN_CNN,
    SAM,
    SPECIFIC,
    Claim,
    Evidence,
    Models,
    Subject,
    alternet_against_its_cnn,
    attention_against_convolution,
    attention_against_other_mixing,
    convolutional,
    local_against_global,
    make_claims,
    sam_against_none,
    value_in_row,
    without_controls,
)
from vitscope.claims.intervals import RESAMPLED
from vitscope.claims.points import Points
from vitscope.claims.statistics import Found, Statistic, larger, one_value, smaller, value_of
from vitscope.measures.bootstrap import bootstrap_image_means
from vitscope.measures.classification.shape_texture import (
    count_classifications_by_cue,
    letters_of,
    shape_share,
)

# The number of resamples of published errors and of published decisions.
RESAMPLES = 2000

_NLL = "nll_train", "training NLL"
_ERROR = "error_percent", "test error"
_PUBLISHED = (
    "Errors are in percentage points. Two published errors are resampled independently, though "
    "they are of the same images, so that the interval of their difference is rather too wide."
)
_OF_BIAS = (
    "The paper's Fig. 5: the first model has no Convs, and the second no MSAs; both were trained "
    f"on as many images, and both of them on mixed images or neither. {_PUBLISHED}"
)
_OF_WINDOWS = (
    "The paper's Fig. 7: the first model has a window of attention (`attention_window`), the "
    "second has none, and nothing else of their networks and trainings differs. " + _PUBLISHED
)


def _no_convs_against_convolution(models: Models) -> list[Subject]:
    found = without_controls(models).items()
    without = [model for model, traits in found if "conv" not in traits.kinds]
    pairs = [(model, *other) for model in without for other in convolutional(models)]
    # More data or mixed images change the errors more than an architecture does.
    on = {model: _images_of_training(each.settings) for model, each in models.items()}
    return [(ours, theirs) for ours, theirs in pairs if on[ours] == on[theirs]]


def _images_of_training(traits: Mapping[str, Any]) -> tuple[Any, bool]:
    """Return how many images a model was trained on, and whether they were mixed."""
    mixes = any(traits.get(f"training.{name}") for name in ("mixup", "cutmix"))
    mixes = mixes and traits.get("training.mixing_probability") != 0
    return traits.get("training.images"), mixes


def _rename_metric(rows: pd.DataFrame, _blocks: pd.DataFrame | None = None) -> pd.DataFrame:
    return rows.rename(columns={"metric": "measure"})


def _published_fit(points: pd.DataFrame) -> pd.DataFrame:
    """Return published points, with resamples of each error if its number of images is known."""
    resampled: list[Any] = []
    for share, images in zip(points["value"] / 100, points["images"], strict=True):
        errors = None
        if np.isfinite(images):
            # Networks with different numbers of errors get different seeds.
            generator = np.random.default_rng(round(share * images))
            errors = 100 * generator.binomial(int(images), share, RESAMPLES) / images
        resampled.append(errors)
    return _rename_metric(points).assign(**{f"value{RESAMPLED}": resampled})


CLAIMS_FIT = Evidence(
    "fit",
    make_claims(
        "Fig. 5",
        _no_convs_against_convolution,
        _OF_BIAS,
        (
            "weak_bias_fits_worse",
            "A model of weaker inductive bias has the higher training loss",
            larger(*_NLL),
        ),
        (
            "weak_bias_errs_more",
            "A model of weaker inductive bias has the higher test error",
            larger(*_ERROR),
        ),
    )
    + make_claims(
        "abstract",
        attention_against_other_mixing,
        SPECIFIC,
        (
            "specific_weights_err_less",
            f"MSAs have a lower test error than {OTHER_MIXING}",
            smaller(*_ERROR),
        ),
    )
    + make_claims(
        "Fig. 12",
        alternet_against_its_cnn,
        f"{OWN_CNN} The test error is that of all test images.",
        (
            "alternet_errs_less",
            "AlterNet has a lower test error than its CNN",
            smaller(*_ERROR),
        ),
    )
    + make_claims(
        "Foret et al. 2021",
        sam_against_none,
        SAM,
        (
            "sam_errs_less",
            "Training with SAM leaves a lower test error",
            smaller(*_ERROR),
        ),
    ),
    _rename_metric,
    _published_fit,
)

CLAIMS_FIT_BY_WINDOW = Evidence(
    "fit",
    make_claims(
        "Fig. 7",
        local_against_global,
        _OF_WINDOWS,
        (
            "local_attention_fits_better",
            "Local attention has a lower training loss than global attention",
            smaller(*_NLL),
        ),
        (
            "local_attention_errs_less",
            "Local attention has a lower test error than global attention",
            smaller(*_ERROR),
        ),
    ),
    _rename_metric,
    _published_fit,
)


def _published_classifications(points: pd.DataFrame) -> pd.DataFrame:
    letters = letters_of(points["decisions"])
    # Average over observers first: all see the same images, so each resample has the same images
    # for all of them.
    by_image = np.stack([(letters == cue).mean(axis=0) for cue in "st"], axis=1)
    resampled = shape_share(bootstrap_image_means(by_image, RESAMPLES, 0))
    value = count_classifications_by_cue(letters)["shape_bias"].iloc[0]
    return pd.DataFrame(
        {"measure": ["shape_bias"], "value": [value], f"value{RESAMPLED}": [resampled]}
    )


def _texture_over_shape(points: Points) -> Found | None:
    bias = one_value(points, "shape_bias")
    return None if bias is None else value_of(1 - 2 * bias)


CLAIMS_SHAPE_TEXTURE = Evidence(
    "shape_texture",
    (
        Claim(
            "msa_goes_by_shape",
            "MSAs go by shape more than Convs do",
            "Section 3",
            attention_against_convolution,
            larger("shape_bias", "shape bias"),
            "The paper infers this from Fig. 2b (Section 3) and has no such figure.",
        ),
        Claim(
            "convs_go_by_texture",
            "Convs go by texture",
            "Geirhos et al. (2019), Fig. 4",
            convolutional,
            Statistic(
                "difference of the shares of texture and of shape in decisions by either",
                "The value is the share of texture in decisions for shape or texture minus "
                "that of shape, which is the shape bias.",
                _texture_over_shape,
            ),
            "The claim of an earlier paper, of networks trained on ImageNet and its "
            "cue-conflict stimuli.",
        ),
    ),
    value_in_row("shape_bias", "class_name", "all"),
    _published_classifications,
)
