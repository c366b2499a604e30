import numpy as np
import pandas as pd
import pytest

from tests.helpers.drawing import VIT, drawn_from
from vitscope.drawing.figure import Member

PIT = Member("pit", "PiT", "pit")
RNG = np.random.default_rng(0)


def positions(model: str, height: int, width: int) -> pd.DataFrame:
    count = height * width
    row, column = np.divmod(np.arange(count), width)
    cosines = RNG.uniform(-1, 1, (count, count))
    return pd.DataFrame(
        {"model": model, "height": height, "width": width, "step": 1, "row": row, "column": column,
         "products": list(3 * cosines), "cosines": list(cosines)}
    )  # fmt: skip


@pytest.fixture
def table() -> pd.DataFrame:
    both = [positions("vit", 4, 4), positions("pit", 16, 20)]
    return pd.concat(both).sample(frac=1, random_state=0)


def test_a_tile_for_each_position_in_its_place(table):
    figure = drawn_from("position_similarity", {"position_similarity": table}, (VIT, PIT))
    small, large, _ = figure.axes
    rows = table[table["model"] == "vit"].sort_values(["row", "column"])
    assert len(small.images) == 16
    for image, row in zip(small.images, rows.to_dict("records"), strict=True):
        np.testing.assert_array_equal(image.get_array(), np.reshape(row["cosines"], (4, 4)))
        left, right, bottom, top = image.get_extent()
        assert (left, top) == (row["column"], row["row"])
        assert right - left == pytest.approx(bottom - top)
    # Of sixteen rows and twenty columns, fourteen.
    assert len(large.images) == 14 * 14
    last = table[(table["model"] == "pit") & (table["row"] == 15) & (table["column"] == 19)]
    expected = np.reshape(last["cosines"].iloc[0], (16, 20))
    np.testing.assert_array_equal(large.images[-1].get_array(), expected)


def test_products_of_all_pairs(table):
    figure = drawn_from("position_products", {"position_similarity": table}, (VIT, PIT))
    maps = [axes for axes in figure.axes if axes.images and axes.get_title()]
    for axes, member in zip(maps, (VIT, PIT), strict=True):
        rows = table[table["model"] == member.model].sort_values(["row", "column"])
        (image,) = axes.images
        np.testing.assert_array_equal(image.get_array(), np.stack(rows["products"]))
