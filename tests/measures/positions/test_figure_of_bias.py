import numpy as np
import pandas as pd
import pytest

from tests.helpers.drawing import SWIN, laid_out
from vitscope.drawing.figure import Member

ALTERNET = Member("alternet", "AlterNet", "alternet")
RNG = np.random.default_rng(0)


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
    assert [text.get_text() for text in axes.texts] == ["0", "4"]
    assert [label.get_text() for label in axes.get_xticklabels()] == [str(n) for n in heads]


def test_a_bias_of_zeros_has_a_scale():
    zeros = layer("swin", 0, [0], 7).assign(lowest=0.0, highest=0.0, values=[np.zeros(49)])
    figure = laid_out("position_bias", {"position_bias": zeros}, (SWIN,))
    assert figure.axes[0].images[0].get_clim() == (-1, 1)
