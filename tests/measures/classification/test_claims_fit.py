"""Claims about how well models fit, on tables made for it and on published values."""

import numpy as np
import pandas as pd
import pytest

from tests.helpers.claims import blocks, count, count_alone, published


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
# Windows of two sizes, and global attention.
BY_WINDOW = pd.concat(
    [fit("m0", 9, 2.3, 8, 10), fit("m1", 12, 2.2, 11, 13), fit("m2", 11, 2.4, 10.5, 11.5)]
)
OF_WINDOWS = pd.concat([blocks("vit").assign(model=f"m{number}") for number in range(3)])
EXAMPLES["fit_by_window"] = {"fit": BY_WINDOW, "blocks": OF_WINDOWS}
WINDOWS = {
    "m0": {"arch.attention_window": 3},
    "m1": {"arch.attention_window": 5},
    "m2": {"arch.attention_window": None},
}
TRAITS = {"fit_by_window": WINDOWS}


def count_windows(theirs=None, traits_of=WINDOWS) -> pd.DataFrame:
    tables, models = EXAMPLES["fit_by_window"], ["m0", "m1", "m2"]
    return count("fit_by_window", tables, models, theirs, traits_of)


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
    errors = claims.loc["weak_bias_errs_more"]
    assert errors.loc["vit", ["ci_low", "ci_high"]].tolist() == pytest.approx(
        [8 - 2**0.5, 8 + 2**0.5]
    )
    assert errors["holds"].to_dict() == {"vit": "yes", "mixer": "undecided"}
    assert claims.loc[("weak_bias_fits_worse", "mixer"), "measured_value"] == pytest.approx(-0.1)


def test_errors_without_intervals_have_no_interval_of_their_difference():
    # A single image tells nothing of the spread.
    table = pd.concat([fit("resnet", 0, 1.0, np.nan, np.nan), fit("vit", 100, 1.3, 90, 100)])
    claims = count_alone("fit", table)
    assert claims.loc[("weak_bias_errs_more", "vit"), "measured_value"] == 100
    assert claims[["ci_low", "ci_high"]].isna().all(axis=None)


def test_published_errors_and_losses_by_hand():
    theirs = published("fit", "fig5.csv", {"resnet": "R", "vit": "ViT"})
    table = pd.concat([fit("resnet", 5, 1, 4, 6), fit("vit", 13, 2, 12, 14)])
    values = count_alone("fit", table, theirs)["published_value"].xs("vit", level="model")
    assert values["weak_bias_fits_worse"] == pytest.approx(2.522 - 2.086)
    assert values["weak_bias_errs_more"] == pytest.approx(33.49 - 17.26)


def test_each_window_is_compared_with_global_attention():
    claims = count_windows()
    assert set(claims["versus"]) == {"m2"}
    values = claims.set_index(["claim", "model"])["measured_value"]
    assert values["local_attention_errs_less"].to_dict() == {"m0": 2, "m1": -1}
    fits = values["local_attention_fits_better"].to_dict()
    assert fits == pytest.approx({"m0": 0.1, "m1": 0.2})
    holds = claims.set_index(["claim", "model"])["holds"]["local_attention_errs_less"]
    assert holds.to_dict() == {"m0": "yes", "m1": "undecided"}


def test_the_published_points_are_in_favour_of_windows():
    theirs = published("fit_by_window", "fig7a.csv", {"m0": "3x3", "m1": "5x5", "m2": "8x8"})
    claims = count_windows(theirs)
    values = claims.set_index(["claim", "model"])["published_value"]
    errors, losses = (values[f"local_attention_{what}"] for what in ("errs_less", "fits_better"))
    assert errors.to_dict() == pytest.approx({"m0": 28.94 - 27.89, "m1": 28.94 - 28.05})
    assert losses.to_dict() == pytest.approx({"m0": 2.473 - 2.451, "m1": 2.473 - 2.406})


def test_models_without_attention_have_no_windows_to_compare():
    table = pd.concat([fit("resnet", 5, 1, 4, 6), fit("mixer", 5, 1, 4, 6)])
    tables = {"fit": table, "blocks": blocks("resnet", "mixer")}
    assert count("fit_by_window", tables, ["resnet", "mixer"]).empty
    # Nor have models of which nothing is known.
    assert count_windows(traits_of={}).empty
