"""Bars of the change over each block: against the table, by pandas, and against the claims."""

import re

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from tests.helpers.claims import count_variances, published, variances
from tests.helpers.drawing import RESNET, VIT, drawn_from
from tests.helpers.refusals import refusal
from tests.helpers.shown import legend_labels
from vitscope.drawing.figure import Member
from vitscope.drawing.looks import KIND_COLORS
from vitscope.measures.measure import ByBlock
from vitscope.measures.registry import kinds

# Each cut point has a size of maps, so that the second block subsamples.
KINDS = ["stem", "msa", "conv", "mlp", "msa", "msa"]
SIZES = [8, 8, 4, 4, 4, 4]
IMAGES, RESAMPLES = 300, 400
# The variance falls by 2 % over an MSA in every image, though images differ by a factor of ten.
FACTORS = [0.98, 3.0, 1.4, 1.1, 0.9]
# Where each kind has its values: the table, the column, what its rows also have, whether the
# change is a ratio, and whether MSAs are said to raise it.
SHOWN = {
    "feature_variance": ("feature_variance", "variance", {}, True, False),
    "normalized_variance": ("normalized_variance", "normalized_variance", {}, True, False),
    "spatial_share": ("spatial_share", "share", {}, True, False),
    "fourier_depth": (
        "fourier",
        "delta_log_amplitude",
        {"measure": "diagonal", "frequency": 1.0},
        False,
        False,
    ),
    "token_similarity": ("token_similarity", "similarity", {}, False, True),
    "mean_token": ("mean_token", "share", {}, False, True),
    "effective_rank": (
        "singular_values",
        "effective_rank",
        {"of": "tokens", "most": 9},
        True,
        False,
    ),
}


def table_of(column: str, model: str = "vit") -> pd.DataFrame:
    generator = np.random.default_rng(3)
    of_image = np.exp(generator.normal(0, 1, IMAGES))
    steps = np.array(FACTORS) * np.exp(generator.normal(0, 0.01, (IMAGES, len(FACTORS))))
    values = of_image[:, None] * np.cumprod(np.column_stack([np.ones(IMAGES), steps]), axis=1)
    drawn = generator.integers(0, IMAGES, (RESAMPLES, IMAGES))
    resampled = values[drawn].mean(axis=1)
    rows = variances(model, KINDS, SIZES, values.mean(axis=0)).rename(columns={"variance": column})
    return rows.assign(
        stage=0,
        images=IMAGES,
        ci_low=np.percentile(resampled, 2.5, axis=0),
        ci_high=np.percentile(resampled, 97.5, axis=0),
        **{f"{column}_resampled": [*resampled.T]},
    )


def draw(kind: str, *members: Member, theirs=None) -> Figure:
    name, column, more, *_ = SHOWN[kind]
    rows = pd.concat([table_of(column, member.model) for member in members]).assign(**more)
    return drawn_from(kind, {name: rows}, members, theirs, change=True)


def bars(axes: Axes) -> list[Rectangle]:
    """Return the bars of a panel, one for each block, without the hatches that lie over some."""
    found = [each for each in axes.patches if isinstance(each, Rectangle) and not each.get_hatch()]
    return sorted(found, key=Rectangle.get_x)


def test_every_kind_that_has_the_key_is_tested_here():
    found = {
        name for name, kind in kinds().items() if kind.options and issubclass(kind.options, ByBlock)
    }
    assert {*SHOWN} == found


@pytest.mark.parametrize("kind", SHOWN)
def test_bars_are_the_changes_of_the_table_with_paired_intervals(kind):
    _, column, _, ratio, _ = SHOWN[kind]
    (axes,) = draw(kind, VIT).axes
    rows = table_of(column)
    expected = 100 * rows[column].pct_change() if ratio else rows[column].diff()
    found = bars(axes)
    np.testing.assert_allclose([bar.get_height() for bar in found], expected[1:], rtol=1e-12)
    middles = [bar.get_x() + bar.get_width() / 2 for bar in found]
    np.testing.assert_allclose(middles, [0.1, 0.3, 0.5, 0.7, 0.9], rtol=1e-12)
    assert [to_hex(bar.get_facecolor()) for bar in found] == [
        to_hex(KIND_COLORS[each]) for each in KINDS[1:]
    ]
    resampled = pd.DataFrame([*rows[f"{column}_resampled"]])
    each = 100 * resampled.pct_change() if ratio else resampled.diff()
    drawn = [lines.get_segments()[0][:, 1] for lines in axes.collections]
    ends = each[1:].quantile([0.025, 0.975], axis=1).T
    # Percentiles of ratios, and ratios of percentiles of their logarithms.
    np.testing.assert_allclose(drawn, ends, rtol=1e-4)


def test_a_paired_interval_tells_a_sign_that_the_intervals_of_the_curve_do_not():
    rows = table_of("variance")
    (axes,) = draw("feature_variance", VIT).axes
    (low, high), *_ = [lines.get_segments()[0][:, 1] for lines in axes.collections]
    assert -2.5 < low < high < -1.5
    assert rows["ci_low"][0] < rows["variance"][1] < rows["ci_high"][0]
    # A curve of the same table has as wide a shade as its values are uncertain.
    assert (rows["ci_high"] - rows["ci_low"])[0] > 0.1 * rows["variance"][0]


def test_ticks_between_powers_of_ten_do_not_run_together():
    (axes,) = drawn_from("feature_variance", {"feature_variance": table_of("variance")}, [VIT],
                         change=True).axes  # fmt: skip
    low, high = axes.get_ylim()
    ticks = {round(at, 9) for at in axes.yaxis.get_minorticklocs() if low < at < high}
    expected = {sign * at for sign in (1, -1) for at in (2, 5, 20, 50, 200, 500)}
    assert ticks == {at for at in expected if low < at < high}
    assert len(ticks) > 2


def test_bars_of_blocks_that_subsample_are_hatched_and_named():
    figure = draw("feature_variance", VIT)
    hatched = [bar for bar in figure.axes[0].patches if bar.get_hatch()]
    assert [bar.get_x() for bar in hatched] == [bars(figure.axes[0])[1].get_x()]
    assert legend_labels(figure) == ["conv", "MLP", "95 % interval", "MSA", "subsampling"]


def count_over(axes: Axes) -> tuple[str, str, int, int]:
    (text,) = [each.get_text() for each in axes.texts if "it:" in each.get_text()]
    name, does, count, total = re.fullmatch(r"(\w+) that (\w+) it: (\d+)\sof\s(\d+)", text).groups()
    return name, does, int(count), int(total)


@pytest.mark.parametrize("kind", SHOWN)
def test_the_count_over_a_panel_is_how_many_msas_do_as_the_claim_says(kind):
    (axes,) = draw(kind, VIT).axes
    assert count_over(axes) == (
        ("MSAs", "raise", 1, 3) if SHOWN[kind][4] else ("MSAs", "lower", 2, 3)
    )


def test_the_count_is_that_of_the_claims():
    rows = pd.concat([table_of("variance", name) for name in ("vit", "resnet")])
    rows.loc[(rows["model"] == "resnet") & (rows["kind"] == "msa"), "kind"] = "conv"
    claims = count_variances(rows).set_index(["model", "claim"])
    figure = drawn_from("feature_variance", {"feature_variance": rows}, (VIT, RESNET), change=True)
    shown = {
        "vit": ("MSAs", "lower", "msa_reduces"),
        "resnet": ("Convs", "raise", "conv_increases"),
    }
    for axes, (model, (name, does, claim)) in zip(figure.axes, shown.items(), strict=True):
        row = claims.loc[model, f"{claim}_variance"]
        assert count_over(axes) == (name, does, row["measured_count"], row["measured_total"])


def test_published_changes_have_panels_of_their_own_on_the_scale_of_the_measured():
    theirs = published("feature_variance", "fig9.csv", {"vit": "ViT"})
    ours, other, below = draw("feature_variance", VIT, RESNET, theirs=theirs).axes
    points = theirs["vit"].points
    heights = [bar.get_height() for bar in bars(below)]
    np.testing.assert_allclose(heights, 100 * points["variance"].pct_change()[1:], rtol=1e-9)
    assert below.get_title() == "Published: ViT\n(another model)"
    assert count_over(below) == ("MSAs", "lower", 12, 12)
    # No points are published of the other, no interval of any, and all have one scale.
    assert not below.collections
    assert ours.get_ylim() == other.get_ylim() == below.get_ylim()
    assert [axes.get_yscale() for axes in (ours, other, below)] == ["symlog"] * 3
    assert [axes.get_xlabel() for axes in (ours, other, below)] == ["Normalized depth"] * 3


def test_a_block_before_or_after_which_there_is_no_value_has_no_bar():
    rows = table_of("variance").astype({"variance_resampled": object})
    rows.loc[2, "variance"] = np.nan
    rows.at[2, "variance_resampled"] = np.full(RESAMPLES, np.nan)
    (axes,) = drawn_from("feature_variance", {"feature_variance": rows}, [VIT], change=True).axes
    assert len(bars(axes)) == len(axes.collections) == 3


def test_one_image_has_bars_without_intervals():
    rows = table_of("variance").assign(variance_resampled=None)
    (axes,) = drawn_from("feature_variance", {"feature_variance": rows}, [VIT], change=True).axes
    assert len(bars(axes)) == 5
    assert not axes.collections


def test_changes_and_models_together_are_refused():
    rows = table_of("variance")
    tables, both = {"feature_variance": rows}, {"change": True, "together": True}
    said = refusal(drawn_from, "feature_variance", tables, [VIT], **both)
    assert "leave `change` out of the figure, or `together`" in said
