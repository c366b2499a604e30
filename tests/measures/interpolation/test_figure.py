import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes

from tests.helpers.drawing import RESNET, SWIN, VIT, drawn_from, laid_out
from tests.helpers.shown import flaws, legend_labels
from vitscope.drawing.looks import look_of
from vitscope.errors import VitscopeError
from vitscope.measures.interpolation.compute import excess_over_ends

SHARES = np.linspace(0, 1, 5)


def curve(first: str, second: str, nll: list[float], *, reset: bool = False) -> pd.DataFrame:
    """A curve whose error is twenty times the NLL."""
    values = np.array(nll)
    facts = {"model": first, "other_model": second, "reset": reset, "images": 50}
    found = {"nll": values, "error": 20 * values, "share": SHARES}
    excess = {f"{name}_excess": excess_over_ends(SHARES, found[name]) for name in ("nll", "error")}
    return pd.DataFrame({**found, **excess}).assign(**facts)


PLAIN = curve("resnet", "vit", [0.5, 2, 3, 1, 1.5])
RESET = curve("resnet", "vit", [0.4, 0.8, 1, 0.9, 1.2], reset=True)
# In no particular order.
BOTH = pd.concat([RESET, PLAIN]).sample(frac=1, random_state=0)


def panels_of(table: pd.DataFrame, *members: object) -> list[Axes]:
    return drawn_from("interpolation", {"interpolation": table}, members or (RESNET, VIT)).axes


def over(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


def test_curves_are_the_table_above_a_line_between_their_ends() -> None:
    loss, error = panels_of(BOTH)
    assert loss.get_title() == "ResNet-50 to ViT-Ti"
    assert (loss.get_ylabel(), error.get_ylabel()) == ("Loss (NLL)", "Error (%)")
    for axes, factor in ((loss, 1), (error, 20)):
        solid, first_ends, dashed, second_ends = axes.lines
        for line, ends, rows in ((solid, first_ends, PLAIN), (dashed, second_ends, RESET)):
            np.testing.assert_array_equal(line.get_xdata(), SHARES)
            np.testing.assert_allclose(line.get_ydata(), factor * rows["nll"])
            assert line.get_color() == look_of(RESNET).color
            assert list(ends.get_xdata()) == [0, 1]
            np.testing.assert_allclose(ends.get_ydata(), factor * rows["nll"].iloc[[0, -1]])
        assert solid.get_linestyle() == "-"
        assert dashed.get_linestyle() == "--"
    words = " ".join(error.get_xlabel().split())
    assert words == "Share of the second network's weights"
    # 3 above the middle of 0.5 and 1.5, and 1 above that of 0.4 and 1.2.
    assert over(loss) == ["barrier 2.00, reset 0.20"]
    assert over(error) == ["barrier 40, reset 4 points"]


def test_the_legend_names_reset_statistics_where_some_are() -> None:
    for table, also in ((BOTH, ["running statistics reset"]), (PLAIN, [])):
        figure = laid_out("interpolation", {"interpolation": table}, (RESNET, VIT))
        assert legend_labels(figure) == ["as interpolated", *also, "between both ends"]
        assert flaws(figure) == []


def test_pairs_stand_side_by_side_in_the_order_of_the_table() -> None:
    table = pd.concat([curve("swin", "vit", [1, 1, 1, 1, 1]), BOTH])
    panels = panels_of(table, RESNET, VIT, SWIN)
    assert [axes.get_title() for axes in panels[:2]] == ["Swin-Ti to ViT-Ti", "ResNet-50 to ViT-Ti"]
    assert over(panels[0]) == ["barrier 0.00"]
    # Both of a row share a scale.
    assert panels[0].get_ylim() == panels[1].get_ylim()
    assert panels[2].get_ylim() == panels[3].get_ylim()


def test_a_gap_is_no_barrier_of_zero() -> None:
    table = curve("resnet", "vit", [0.5, np.nan, np.nan, 1, 1.5])
    assert over(panels_of(table)[0]) == ["barrier not finite"]


def test_a_model_without_a_pair_is_refused() -> None:
    with pytest.raises(VitscopeError, match="interpolation table has no model 'swin': delete the"):
        panels_of(BOTH, RESNET, VIT, SWIN)
