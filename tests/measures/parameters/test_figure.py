import numpy as np
import pandas as pd
import pytest

from tests.helpers.drawing import SWIN, VIT, drawn_from, laid_out
from vitscope.drawing.figure import Member
from vitscope.measures.parameters.show import tile_filter_pictures

ALTERNET, PIT = Member("alternet", "AlterNet", "alternet"), Member("pit", "PiT", "pit")
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


def layer(model: str, number: int, heads: list[int | None], side: int) -> pd.DataFrame:
    values = RNG.normal(size=(len(heads), side * side))
    return pd.DataFrame(
        {"model": model, "layer": number, "head": pd.array(heads, dtype="Int32"), "height": side,
         "width": side, "lowest": values.min(1), "highest": values.max(1), "values": list(values)}
    )  # fmt: skip


def test_layers_are_across_and_heads_down():
    swin = [layer("swin", number, [0, 1, 2], 7) for number in range(5)]
    parts = [*swin, layer("swin", 5, [0, 1, 2, 3], 3)]
    parts += [layer("alternet", number, [None], 7) for number in range(2)]
    table = pd.concat(parts).sample(frac=1, random_state=0)
    figure = laid_out("position_bias", {"position_bias": table}, (SWIN, ALTERNET))
    above, below = figure.axes
    rows = table[table["model"] == "swin"].sort_values(["layer", "head"])
    assert len(above.images) == 19
    for image, row in zip(above.images, rows.to_dict("records"), strict=True):
        side = row["height"]
        np.testing.assert_array_equal(image.get_array(), np.reshape(row["values"], (side, side)))
        left, _, _, top = image.get_extent()
        assert (left, top) == (1.25 * row["layer"], row["head"])
    largest = rows[["lowest", "highest"]].abs().to_numpy().max()
    assert {image.get_clim() for image in above.images} == {(-largest, largest)}
    assert [label.get_text() for label in above.get_yticklabels()] == ["0", "1", "2", "3"]
    assert [label.get_text() for label in below.get_yticklabels()] == ["all"]
    assert len(below.images) == 2
    # Tiles of both panels are of one size.
    sizes = [axes.get_window_extent().width / np.ptp(axes.get_xlim()) for axes in (above, below)]
    assert sizes[0] == pytest.approx(sizes[1], rel=0.02)
    # Each has its own bar, beside its tiles.
    for axes in (above, below):
        (bar,) = axes.child_axes
        assert bar.get_title(loc="left") == "Bias of the logit"
        last = max(image.get_extent()[1] for image in axes.images)
        edge = axes.transData.transform((last, 0))[0]
        assert 0 < bar.get_window_extent().x0 - edge < 0.3 * figure.dpi


def test_a_layer_of_many_more_heads_has_several_columns():
    heads = {0: 1, 1: 2, 2: 4, 3: 4, 4: 4, 5: 8}
    table = pd.concat([layer("swin", n, [*range(count)], 7) for n, count in heads.items()])
    figure = laid_out("position_bias", {"position_bias": table}, (SWIN,))
    (axes,) = figure.axes
    drawn = [(image.get_extent()[0], image.get_extent()[3]) for image in axes.images]
    assert drawn[-8:] == [(6.25 + column, row) for column in (0, 1) for row in range(4)]
    assert [text.get_text() for text in axes.texts] == ["0–3", "4–7"]
    assert [label.get_text() for label in axes.get_xticklabels()] == [str(n) for n in heads]


def test_a_bias_of_zeros_has_a_scale():
    zeros = layer("swin", 0, [0], 7).assign(lowest=0.0, highest=0.0, values=[np.zeros(49)])
    figure = laid_out("position_bias", {"position_bias": zeros}, (SWIN,))
    assert figure.axes[0].images[0].get_clim() == (-1, 1)


MEMBERS = [Member(name, name.upper(), name) for name in ("vit", "resnet", "pit", "swin")]


def filters(model: str, shown: int, count: int, side: int = 4, channels: int = 3) -> pd.DataFrame:
    values = RNG.uniform(size=(shown, side * side * channels))
    return pd.DataFrame(
        {"model": model, "number": np.arange(shown), "count": count, "height": side, "width": side,
         "channels": channels, "values": list(values)}
    )  # fmt: skip


@pytest.fixture
def of_filters() -> pd.DataFrame:
    parts = [
        filters("vit", 128, 192, 16), filters("resnet", 8, 8, 3), filters("pit", 24, 24),
        filters("swin", 5, 5, 2, 1),
    ]  # fmt: skip
    shown = pd.concat(parts).assign(of="filter", share=np.nan)
    of_components = [filters("vit", 28, 191, 16), filters("resnet", 7, 7, 3)]
    components = pd.concat(of_components).assign(of="component", share=0.03)
    return pd.concat([shown, components]).sample(frac=1, random_state=0)


def test_tiles_stand_in_rows() -> None:
    tiles = np.stack([np.full((2, 2, 3), value) for value in (0.1, 0.2, 0.3)])
    page = tile_filter_pictures(tiles, 2)
    # Each pixel is 24 wide, and 6 are between two tiles.
    assert page.shape == (48 + 6 + 48, 48 + 6 + 48, 3)
    assert (page[:48, :48] == 0.1).all()
    assert (page[:48, 54:] == 0.2).all()
    assert (page[54:, :48] == 0.3).all()
    assert (page[54:, 54:] == 1).all()
    assert (page[48:54] == 1).all()


def test_every_filter_is_shown_in_its_place(of_filters):
    figure = drawn_from("patch_filters", {"patch_filters": of_filters}, MEMBERS)
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == [
        "VIT\nfirst 128 of 192 filters of 16×16 pixels",
        "RESNET\n8 filters of 3×3 pixels",
        "PIT\n24 filters of 4×4 pixels",
        "SWIN\n5 filters of 2×2 pixels",
    ]
    for axes, member in zip(figure.axes, MEMBERS, strict=True):
        rows = of_filters[(of_filters["model"] == member.model) & (of_filters["of"] == "filter")]
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


def test_components_say_how_much_they_have(of_filters):
    figure = drawn_from("patch_components", {"patch_filters": of_filters}, MEMBERS[:2])
    assert [axes.get_title() for axes in figure.axes] == [
        "VIT\nfirst 28 of 191:\n84.0 % of the variance",
        "RESNET\nall 7 components",
    ]


def test_a_model_whose_filters_do_not_differ_has_no_components(of_filters):
    figure = drawn_from("patch_components", {"patch_filters": of_filters}, MEMBERS[2:])
    assert figure.axes[1].get_title() == "SWIN\nfilters that do not differ"
