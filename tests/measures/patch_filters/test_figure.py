import numpy as np
import pandas as pd
import pytest

from tests.helpers.drawing import drawn_from
from vitscope.drawing.figure import Member
from vitscope.measures.patch_filters.show import tiled

MEMBERS = [Member(name, name.upper(), name) for name in ("vit", "resnet", "pit", "swin")]
RNG = np.random.default_rng(0)


def filters(model: str, shown: int, count: int, side: int = 4, channels: int = 3) -> pd.DataFrame:
    values = RNG.uniform(size=(shown, side * side * channels))
    return pd.DataFrame(
        {"model": model, "number": np.arange(shown), "count": count, "height": side, "width": side,
         "channels": channels, "values": list(values)}
    )  # fmt: skip


@pytest.fixture
def table() -> pd.DataFrame:
    of_filters = [
        filters("vit", 128, 192, 16), filters("resnet", 8, 8, 3), filters("pit", 24, 24),
        filters("swin", 5, 5, 2, 1),
    ]  # fmt: skip
    shown = pd.concat(of_filters).assign(of="filter", share=np.nan)
    of_components = [filters("vit", 28, 191, 16), filters("resnet", 7, 7, 3)]
    components = pd.concat(of_components).assign(of="component", share=0.03)
    return pd.concat([shown, components]).sample(frac=1, random_state=0)


def test_tiles_stand_in_rows() -> None:
    tiles = np.stack([np.full((2, 2, 3), value) for value in (0.1, 0.2, 0.3)])
    page = tiled(tiles, 2)
    # Each pixel is 24 wide, and 6 are between two tiles.
    assert page.shape == (48 + 6 + 48, 48 + 6 + 48, 3)
    assert (page[:48, :48] == 0.1).all()
    assert (page[:48, 54:] == 0.2).all()
    assert (page[54:, :48] == 0.3).all()
    assert (page[54:, 54:] == 1).all()
    assert (page[48:54] == 1).all()


def test_every_filter_is_shown_in_its_place(table):
    figure = drawn_from("patch_filters", {"patch_filters": table}, MEMBERS)
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == [
        "VIT\nfirst 128 of 192 filters of 16×16 pixels",
        "RESNET\n8 filters of 3×3 pixels",
        "PIT\n24 filters of 4×4 pixels",
        "SWIN\n5 filters of 2×2 pixels",
    ]
    for axes, member in zip(figure.axes, MEMBERS, strict=True):
        rows = table[(table["model"] == member.model) & (table["of"] == "filter")]
        rows = rows.sort_values("number")
        page = axes.images[0].get_array()
        side, channels = rows["height"].iloc[0], rows["channels"].iloc[0]
        larger = -(-48 // side)
        columns = (page.shape[1] + 6) // (side * larger + 6)
        for number, values in enumerate(rows["values"]):
            top, left = (at * (side * larger + 6) for at in divmod(number, columns))
            tile = page[top : top + side * larger : larger, left : left + side * larger : larger]
            expected = np.broadcast_to(np.reshape(values, (side, side, channels)), (side, side, 3))
            np.testing.assert_array_equal(tile, expected)


def test_components_say_how_much_they_have(table):
    figure = drawn_from("patch_components", {"patch_filters": table}, MEMBERS[:2])
    assert [axes.get_title() for axes in figure.axes] == [
        "VIT\nfirst 28 of 191:\n84.0 % of the variance",
        "RESNET\nall 7 components",
    ]


def test_a_model_whose_filters_do_not_differ_has_no_components(table):
    figure = drawn_from("patch_components", {"patch_filters": table}, MEMBERS[2:])
    assert figure.axes[1].get_title() == "SWIN\nfilters that do not differ"
