"""The claim about shape bias, on tables made for it."""

import numpy as np
import pandas as pd
import pytest

from tests.helpers.claims import blocks, count, verdicts
from vitscope.claims.published import read_published
from vitscope.package_data import PUBLISHED_POINTS

# Models whose bias goes up and down with that of the others, and 95 % of all resamples.
STEPS, ENDS = np.linspace(-1, 1, 401), np.array([-0.95, 0.95])


def shape(**values: tuple[float, float | None]) -> dict[str, pd.DataFrame]:
    """Return a table of shape biases, each with by how much it moves from resample to resample."""
    rows = [
        {
            "model": model,
            "class_name": name,
            "shape_bias": bias,
            "shape_bias_resampled": moves and bias + moves * STEPS,
        }
        for model, (bias, moves) in values.items()
        for name in ("circle", "all")
    ]
    table = pd.DataFrame(rows)
    # The rows of single classes say the opposite.
    classes = table["class_name"] != "all"
    table.loc[classes, "shape_bias"] = 1 - table.loc[classes, "shape_bias"]
    return {"shape_texture": table, "blocks": blocks(*values)}


EXAMPLES = {"shape_texture": shape(vit=(0.7, 0.2), resnet=(0.4, 0.1))}


@pytest.mark.parametrize(
    ("vit", "value", "moves", "holds"),
    [
        ((0.7, 0.3), 0.3, 0.2, "yes, in this network"),
        ((0.45, 0.2), 0.05, 0.1, "open"),
        ((0.4, 0.2), 0.0, 0.1, "open"),
        ((0.2, 0.2), -0.2, 0.1, "no, in this network"),
        ((0.7, None), 0.3, None, "yes, without an interval"),
        ((np.nan, None), None, None, None),
    ],
)
def test_shape_biases_are_compared(vit, value, moves, holds):
    tables = shape(vit=vit, resnet=(0.4, 0.1), mixer=(0.9, 0.1))
    claims = count("shape_texture", tables, ["mixer", "resnet", "vit"])
    claims = claims[claims["claim"] == "msa_goes_by_shape"]
    assert list(verdicts(claims)) == [("msa_goes_by_shape", "vit", "resnet")]
    (row,) = claims.astype(object).where(claims.notna(), None).to_dict("records")
    assert row["measured_value"] == (None if value is None else pytest.approx(value))
    ends = (None, None) if moves is None else pytest.approx(value + moves * ENDS)
    assert (row["measured_low"], row["measured_high"]) == ends
    assert row["holds"] == holds
    assert (row["measured_count"], row["measured_total"]) == (None, None)


@pytest.mark.parametrize(
    ("resnet", "value", "holds"),
    [
        ((0.22, 0.03), 0.56, "yes, in this network"),
        ((0.45, 0.06), 0.1, "open"),
        ((0.8, 0.03), -0.6, "no, in this network"),
        ((0.22, None), 0.56, "yes, without an interval"),
    ],
)
def test_convs_go_by_texture(resnet, value, holds):
    tables = shape(vit=(0.7, 0.1), resnet=resnet)
    claims = count("shape_texture", tables, ["resnet", "vit"])
    (row,) = claims[claims["claim"] == "convs_go_by_texture"].to_dict("records")
    assert row["model"] == "resnet"
    assert row["measured_value"] == pytest.approx(value)
    assert row["holds"] == holds
    if resnet[1]:
        expected = value + 2 * resnet[1] * ENDS
        assert [row["measured_low"], row["measured_high"]] == pytest.approx(expected)


def test_published_decisions_are_judged():
    published = read_published(
        PUBLISHED_POINTS / "cue_conflict.csv", {"decisions"}, {"resnet": "ResNet-50"}
    )
    claims = count("shape_texture", shape(vit=(0.7, 0.1), resnet=(0.2, 0.1)), ["resnet"], published)
    (row,) = claims[claims["claim"] == "convs_go_by_texture"].to_dict("records")
    texture, shapes = 572, 162
    decisions = texture + shapes
    assert row["published_value"] == pytest.approx((texture - shapes) / decisions)
    # Of each decision one cue or the other: the interval is that of a share, times two.
    half = 2 * 1.959964 * np.sqrt(texture * shapes / decisions**3)
    ends = row["published_value"] + half * np.array([-1, 1])
    assert [row["published_low"], row["published_high"]] == pytest.approx(ends, abs=0.08 * half)
    assert row["published_verdict"] == "yes"
