"""Claims about how well models fit, on tables made for it and on published values."""

import numpy as np
import pandas as pd
import pytest

from tests.helpers.claims import (
    blocks,
    count_alone,
    in_favour,
    published,
)


def fit(model: str, error: float, nll: float, low: float, high: float) -> pd.DataFrame:
    rows = [("error_percent", error, low, high), ("nll_train", nll, np.nan, np.nan)]
    table = pd.DataFrame(rows, columns=["metric", "value", "ci_low", "ci_high"])
    return table.assign(model=model)


EXAMPLES = {
    "fit": {
        "fit": pd.concat([fit("vit", 2, 2, 1.9, 2.1), fit("resnet", 1, 1, 0.9, 1.1)]),
        "blocks": blocks("vit", "resnet"),
    }
}


def test_models_without_convs_are_compared_with_those_of_convs_alone():
    table = pd.concat(
        [
            fit("resnet", 5, 1.0, 4, 6),
            fit("vit", 13, 1.3, 12, 14),
            fit("alternet", 5, 1.1, 4, 6),
            fit("mixer", 4.5, 0.9, 3.5, 5.5),
        ]
    )
    claims = count_alone("fit", table)
    assert {model for _, model in claims.index} == {"vit", "mixer"}
    assert claims.loc[("weak_bias_fits_worse", "vit"), "measured_value"] == pytest.approx(0.3)
    assert claims.loc[("weak_bias_errs_more", "vit"), "measured_value"] == pytest.approx(8)
    assert claims.loc[("weak_bias_errs_more", "vit"), "apart"]
    assert in_favour(claims.loc[("weak_bias_errs_more", "vit")])
    assert not in_favour(claims.loc[("weak_bias_errs_more", "mixer")])
    assert not claims.loc[("weak_bias_errs_more", "mixer"), "apart"]
    assert claims.loc[("weak_bias_fits_worse", "mixer"), "measured_value"] == pytest.approx(-0.1)


def test_errors_without_intervals_are_neither_apart_nor_not():
    # A single image tells nothing of the spread.
    table = pd.concat([fit("resnet", 0, 1.0, np.nan, np.nan), fit("vit", 100, 1.3, 90, 100)])
    claims = count_alone("fit", table)
    assert claims.loc[("weak_bias_errs_more", "vit"), "measured_value"] == 100
    assert claims["apart"].isna().all()


def test_published_errors_and_losses_by_hand():
    theirs = published("fit", "fig5.csv", {"resnet": "R", "vit": "ViT"})
    table = pd.concat([fit("resnet", 5, 1, 4, 6), fit("vit", 13, 2, 12, 14)])
    values = count_alone("fit", table, theirs)["published_value"].xs("vit", level="model")
    assert values["weak_bias_fits_worse"] == pytest.approx(2.522 - 2.086)
    assert values["weak_bias_errs_more"] == pytest.approx(33.49 - 17.26)
