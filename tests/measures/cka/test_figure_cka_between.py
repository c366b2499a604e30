"""The figure of two networks shows its table, the first network across and the second up."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.lines import Line2D

from tests.helpers.shown import legend_labels
from tests.measures.cka.test_figure import (
    MODELS,
    RESNET,
    SWIN,
    VIT,
    block_table,
    cells_of,
    maps_of,
    marks_of,
)
from vitscope.errors import VitscopeError


def between(first: str, second: str) -> pd.DataFrame:
    """Values that no two pairs share."""
    counts = len(MODELS[first][0]), len(MODELS[second][0])
    index, other = np.indices(counts).reshape(2, -1)
    return pd.DataFrame(
        {
            "model": first,
            "other_model": second,
            "index": index,
            "other_index": other,
            "images": 256,
            "batches": 4,
            "hsic": 1.0,
            "cka": np.random.default_rng(counts).uniform(0.02, 1, len(index)),
        }
    )


@pytest.fixture
def drawn(laid_out):
    def draw_it(*pairs, members=(RESNET, VIT, SWIN), **changed):
        tables = {
            "cka_between": pd.concat([between(*pair).sample(frac=1) for pair in pairs]),
            "blocks": pd.concat(map(block_table, MODELS)).sample(frac=1, random_state=0),
        }
        return laid_out("cka_between", tables | changed, members)

    return draw_it


def test_the_first_network_is_across_and_the_second_up(drawn):
    (axes,) = maps_of(drawn(("resnet", "swin")))
    assert axes.get_xlabel() == "Normalized depth of ResNet-50"
    assert axes.get_ylabel() == "Normalized depth of Swin-Ti"
    table = between("resnet", "swin")
    expected = table.pivot(index="other_index", columns="index", values="cka").to_numpy()
    cells = cells_of(axes)
    np.testing.assert_array_equal(cells.get_array(), expected)
    # The middle of each cell is at the depths of its two cut points.
    left, right, bottom, top = cells.get_extent()
    for low, high, count in ((left, right, 17), (bottom, top, 9)):
        side = (high - low) / count
        middles = low + side * (np.arange(count) + 0.5)
        np.testing.assert_allclose(middles, np.linspace(0, 1, count), atol=1e-12)
    assert cells.origin == "lower"
    width, height = axes.get_window_extent().size
    assert width == pytest.approx(height, abs=1)


def test_each_axis_has_the_bands_of_its_own_network(drawn):
    (axes,) = maps_of(drawn(("resnet", "swin")))
    expected = {
        ("subsampling", "x"): (16, [4, 8, 14]),
        ("subsampling", "y"): (8, [3, 6]),
        ("msa", "x"): (16, []),
        ("msa", "y"): (8, [1, 4, 7]),
    }
    for (kind, along), (last, cut_points) in expected.items():
        cells = np.array([(index - 0.5, index + 0.5) for index in cut_points]).reshape(-1, 2)
        np.testing.assert_allclose(marks_of(axes, kind, along) * last, cells, atol=1e-12)
    lines = [*map(Line2D.get_data, axes.lines)]
    np.testing.assert_allclose([x[0] * 16 for x, _ in lines if x[0] == x[1]], [0.5, 3.5, 7.5, 13.5])
    np.testing.assert_allclose([y[0] * 8 for _, y in lines if y[0] == y[1]], [0.5, 2.5, 5.5])


def test_pairs_are_in_the_order_of_the_table(drawn):
    figure = drawn(("vit", "swin"), ("resnet", "vit"), ("vit", "resnet"))
    labels = [(axes.get_xlabel(), axes.get_ylabel()) for axes in maps_of(figure)]
    of = "Normalized depth of"
    assert labels == [
        (f"{of} ViT-Ti", f"{of} Swin-Ti"),
        (f"{of} ResNet-50", f"{of} ViT-Ti"),
        (f"{of} ViT-Ti", f"{of} ResNet-50"),
    ]
    assert legend_labels(figure) == ["MSA", "subsampling"]


def test_undefined_cells_are_left_open_and_named(drawn):
    table = between("resnet", "vit")
    table.loc[table["index"] == 3, "cka"] = np.nan
    figure = drawn(("resnet", "vit"), cka_between=table)
    (axes,) = maps_of(figure)
    mask = np.ma.getmaskarray(cells_of(axes).get_array())
    assert mask[:, 3].all()
    assert mask.sum() == 25
    assert legend_labels(figure) == ["undefined", "MSA", "subsampling"]


def test_a_pair_that_was_not_measured_whole_is_refused(drawn):
    table = between("resnet", "vit").query("other_index < 7")
    with pytest.raises(VitscopeError) as caught:
        drawn(("resnet", "vit"), cka_between=table)
    assert str(caught.value) == (
        "The cka_between table has 119 pairs of cut points of the models 'resnet' and 'vit', which "
        "have 17 and 25: delete the tables and run again."
    )
