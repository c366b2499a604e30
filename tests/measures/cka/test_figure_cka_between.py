"""The figure of two networks shows its table, the first network across and the second up."""

import numpy as np
import pandas as pd
import pytest

from tests.measures.cka.test_figure import (
    RESNET,
    SWIN,
    VIT,
    cells_of,
    check_middles,
    lines_of,
    maps_of,
    marks_of,
)
from tests.measures.conftest import MODELS, cut_points
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
            "blocks": pd.concat(map(cut_points, MODELS)).sample(frac=1, random_state=0),
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
    left, right, bottom, top = cells.get_extent()
    check_middles(left, right, 17)
    check_middles(bottom, top, 28)
    width, height = axes.get_window_extent().size
    assert width == pytest.approx(height, abs=1)


def test_each_axis_has_the_bands_of_its_own_network(drawn):
    (axes,) = maps_of(drawn(("resnet", "swin")))
    expected = {
        ("subsampling", "x"): (16, [4, 8, 14]),
        ("subsampling", "y"): (27, [5, 10, 23]),
        ("msa", "x"): (16, []),
        ("msa", "y"): (27, [1, 3, 6, 8, *range(11, 23, 2), 24, 26]),
    }
    for (kind, along), (last, marked) in expected.items():
        cells = np.array([(index - 0.5, index + 0.5) for index in marked]).reshape(-1, 2)
        np.testing.assert_allclose(marks_of(axes, kind, along) * last, cells, atol=1e-12)
    across, up = lines_of(axes, 16, 27)
    np.testing.assert_allclose(across, [0.5, 3.5, 7.5, 13.5])
    np.testing.assert_allclose(up, [0.5, 4.5, 9.5, 22.5])


def test_a_pair_that_was_not_measured_whole_is_refused(drawn):
    table = between("resnet", "vit").query("other_index < 7")
    with pytest.raises(VitscopeError) as caught:
        drawn(("resnet", "vit"), cka_between=table)
    assert str(caught.value) == (
        "The cka_between table has 119 pairs of cut points of the models 'resnet' and 'vit', which "
        "have 17 and 25: delete the tables and run again."
    )
