import numpy as np
import pandas as pd
import pytest

from tests.helpers.shown import legend_labels
from vitscope.drawing.figure import Member
from vitscope.measures.fourier.plane import BANDS

RESNET = Member("resnet", "ResNet-50", "resnet")
VIT = Member("vit", "ViT-Ti", "vit")
LABELS = ["low: up to 0.25π", "middle: 0.25π to 0.5π", "high: above 0.5π", "95 % interval"]


@pytest.fixture
def spectrum(table):
    """A spectrum table of both models, in no order; maps of 4 x 4 have no low frequencies."""
    points = table.drop(columns=["variance", "ci_low", "ci_high"])
    shares = np.random.default_rng(0).dirichlet([2, 3, 4], len(points))
    shares[points["height"] == 4, 0] = np.nan
    parts = [
        points.assign(
            band=band,
            above=[0, 0.25, 0.5][number],
            up_to=[0.25, 0.5, 2**0.5][number],
            components=10,
            variance=shares[:, number],
            share=shares[:, number],
            ci_low=shares[:, number] * 0.9,
            ci_high=shares[:, number] * 1.05,
        )
        for number, band in enumerate(BANDS)
    ]
    return pd.concat(parts).sample(frac=1, random_state=0)


@pytest.fixture
def drawn(spectrum, drawn_from):
    def draw_it(members=(RESNET, VIT), table=spectrum):
        return drawn_from("spectrum", {"spectrum": table}, members)

    return draw_it


def test_panels_show_the_shares_of_the_table(drawn, spectrum):
    figure = drawn()
    assert [axes.get_title() for axes in figure.axes] == ["ResNet-50", "ViT-Ti"]
    for axes, model in zip(figure.axes, ["resnet", "vit"], strict=True):
        rows = spectrum[spectrum["model"] == model].sort_values("index")
        assert (axes.get_xlim(), axes.get_ylim()) == ((0, 1), (0, 1))
        for line, interval, band in zip(axes.lines, axes.collections, BANDS, strict=True):
            points = rows[rows["band"] == band]
            np.testing.assert_array_equal(line.get_xdata(), points["depth"])
            np.testing.assert_array_equal(line.get_ydata(), points["share"])
            low, high = interval.get_datalim(axes.transData).intervaly
            assert (low, high) == (points["ci_low"].min(), points["ci_high"].max())
    # What is undefined is left out.
    assert np.isnan(figure.axes[0].lines[0].get_ydata()).sum() == 3


def test_the_legend_says_where_bands_end(drawn, spectrum):
    assert legend_labels(drawn()) == [*LABELS, "MSA", "subsampling"]
    assert legend_labels(drawn([VIT])) == [*LABELS, "MSA"]
    without = spectrum.assign(ci_low=np.nan, ci_high=np.nan)
    assert legend_labels(drawn([VIT], without)) == [*LABELS[:3], "MSA"]
