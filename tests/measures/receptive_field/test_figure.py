import numpy as np
import pandas as pd
import pytest
from matplotlib.patches import Rectangle

from tests.helpers.drawing import RESNET, VIT, drawn_from


def fields(table: pd.DataFrame, indices: dict[str, list[int]]) -> pd.DataFrame:
    """Contributions of images of 8 pixels, brightest in one pixel."""
    chosen = [
        table[(table["model"] == model) & table["index"].isin(which)]
        for model, which in indices.items()
    ]
    rows = pd.concat(chosen).sample(frac=1, random_state=0)
    maps = [np.where(np.arange(64) == 36, 9.0, 1.0 * index) for index in rows["index"]]
    return rows.assign(
        contributions=maps, image_width=8, side_50=3, side_99=5, area_50=9 / 64, area_99=25 / 64
    )


@pytest.fixture
def drawn(table):
    found = fields(table, {"vit": [0, 12, 24], "resnet": [0, 16]})
    return found, drawn_from("receptive_field", {"receptive_field": found}, (VIT, RESNET))


def test_each_map_is_scaled_to_its_largest(drawn):
    found, figure = drawn
    maps = [axes for axes in figure.axes if axes.images]
    assert len(maps) == 5
    rows = pd.concat(
        [found[found["model"] == name].sort_values("index") for name in ("vit", "resnet")]
    )
    for axes, row in zip(maps, rows.to_dict("records"), strict=True):
        logs = np.log10(np.reshape(row["contributions"], (8, 8)) + 1)
        (image,) = axes.images
        np.testing.assert_allclose(image.get_array(), logs / logs.max())
        assert image.get_clim() == (0, 1)
        where = "stem" if row["index"] == 0 else f"depth {row['depth']:.2f}"
        assert axes.get_title() == f"{where}\nhalf in 14.1 %"


def test_squares_are_around_the_central_pixel(drawn):
    _, figure = drawn
    small, large = [patch for patch in figure.axes[0].patches if isinstance(patch, Rectangle)]
    # The central pixel, of row and column 4, reaches from 3.5 to 4.5.
    assert (small.get_xy(), small.get_width(), small.get_height()) == ((2.5, 2.5), 3, 3)
    assert (large.get_xy(), large.get_width()) == ((1.5, 1.5), 5)


def test_a_map_to_which_no_pixel_contributes(table):
    one = fields(table, {"vit": [0]})
    none = one.assign(contributions=[np.zeros(64)], side_50=np.nan, side_99=np.nan, area_50=np.nan)
    figure = drawn_from("receptive_field", {"receptive_field": none}, (VIT,))
    assert figure.axes[0].get_title() == "stem"
    assert not figure.axes[0].patches
