"""The claim about shape bias, on tables made for it."""

import numpy as np
import pandas as pd
import pytest

from tests.helpers.claims import blocks, count, verdicts
from vitscope.claims.published import read_published
from vitscope.package_data import PUBLISHED_POINTS


def shape(**values: tuple[float, float, float]) -> dict[str, pd.DataFrame]:
    rows = [
        {"model": model, "class_name": name, "shape_bias": bias, "ci_low": low, "ci_high": high}
        for model, (bias, low, high) in values.items()
        for name in ("circle", "all")
    ]
    table = pd.DataFrame(rows)
    # The rows of single classes say the opposite.
    classes = table["class_name"] != "all"
    table.loc[classes, "shape_bias"] = 1 - table.loc[classes, "shape_bias"]
    return {"shape_texture": table, "blocks": blocks(*values)}


EXAMPLES = {"shape_texture": shape(vit=(0.7, 0.6, 0.8), resnet=(0.4, 0.3, 0.5))}


@pytest.mark.parametrize(
    ("vit", "value", "holds"),
    [
        ((0.7, 0.65, 0.75), 0.3, "yes"),
        ((0.45, 0.4, 0.5), 0.05, "undecided"),
        ((0.4, 0.35, 0.45), 0.0, "undecided"),
        ((0.2, 0.15, 0.25), -0.2, "no"),
        ((0.7, np.nan, np.nan), 0.3, "yes, without an interval"),
        ((np.nan, np.nan, np.nan), None, None),
    ],
)
def test_shape_biases_are_compared(vit, value, holds):
    tables = shape(vit=vit, resnet=(0.4, 0.35, 0.45), mixer=(0.9, 0.8, 1.0))
    claims = count("shape_texture", tables, ["mixer", "resnet", "vit"])
    claims = claims[claims["claim"] == "msa_goes_by_shape"]
    assert list(verdicts(claims)) == [("msa_goes_by_shape", "vit", "resnet")]
    (row,) = claims.astype(object).where(claims.notna(), None).to_dict("records")
    assert row["measured_value"] == (None if value is None else pytest.approx(value))
    assert row["holds"] == holds
    assert (row["measured_count"], row["measured_total"]) == (None, None)


@pytest.mark.parametrize(
    ("resnet", "value", "holds"),
    [
        ((0.22, 0.19, 0.25), 0.56, "yes"),
        ((0.45, 0.39, 0.51), 0.1, "undecided"),
        ((0.8, 0.77, 0.83), -0.6, "no"),
        ((0.22, np.nan, np.nan), 0.56, "yes, without an interval"),
    ],
)
def test_convs_go_by_texture(resnet, value, holds):
    published = read_published(
        PUBLISHED_POINTS / "cue_conflict.csv", {"decisions"}, {"resnet": "ResNet-50"}
    )
    tables = shape(vit=(0.7, 0.6, 0.8), resnet=resnet)
    claims = count("shape_texture", tables, ["resnet", "vit"], published)
    (row,) = claims[claims["claim"] == "convs_go_by_texture"].to_dict("records")
    assert row["model"] == "resnet"
    assert row["measured_value"] == pytest.approx(value)
    assert row["holds"] == holds
    assert row["published_value"] == pytest.approx((572 - 162) / (162 + 572))
