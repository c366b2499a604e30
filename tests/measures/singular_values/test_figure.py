import numpy as np
import pandas as pd
import pytest

from tests.helpers.drawing import RESNET, VIT, drawn_from
from vitscope.drawing.looks import depth_color

BOTH = (VIT, RESNET)


@pytest.fixture
def values(table: pd.DataFrame) -> pd.DataFrame:
    """Spectra that fall faster with depth; of tokens, the last two values are round-off."""
    ratios = [[*(-np.arange(6) * (1 + each)), *[np.log(1e-6)] * 2] for each in table["depth"]]
    rank = 8 - 3 * table["depth"]
    tokens = table.assign(
        of="tokens", most=8, vectors=64, effective_rank=rank, ci_low=rank - 0.1, ci_high=rank + 0.1,
        log_ratios=ratios,
    )  # fmt: skip
    longer = [-np.arange(20) * 0.1] * len(table)
    images = tokens.assign(
        of="images", most=20, ci_low=np.nan, ci_high=np.nan, effective_rank=2.0, log_ratios=longer
    )
    return pd.concat([tokens, images]).drop(columns="variance")


def test_a_curve_for_each_cut_point(values):
    figure = drawn_from("singular_values", {"singular_values": values}, BOTH)
    for axes, member in zip(figure.axes[:2], BOTH, strict=True):
        rows = values[(values["model"] == member.model) & (values["of"] == "tokens")]
        for line, row in zip(axes.lines, rows.sort_values("index").to_dict("records"), strict=True):
            # It ends before what is round-off.
            np.testing.assert_array_equal(line.get_xydata(), [*enumerate(row["log_ratios"], 1)][:6])
            assert line.get_color() == depth_color(row["depth"])
    below = figure.axes[2:4]
    assert all(len(line.get_xdata()) == 20 for axes in below for line in axes.lines)
    # One scale for panels side by side.
    assert figure.axes[0].get_ylim() == figure.axes[1].get_ylim()
    assert below[0].get_ylim() == below[1].get_ylim()


def test_a_network_without_tokens_to_compare(values):
    none = values.assign(most=0, log_ratios=[[]] * len(values))
    figure = drawn_from("singular_values", {"singular_values": none}, BOTH)
    assert not any(axes.lines for axes in figure.axes)


def test_ranks_by_depth(values):
    figure = drawn_from("effective_rank", {"singular_values": values}, BOTH)
    for axes, member in zip(figure.axes, BOTH, strict=True):
        rows = values[values["model"] == member.model].sort_values("index")
        tokens, images, most = axes.lines
        of_tokens = rows[rows["of"] == "tokens"]
        np.testing.assert_array_equal(tokens.get_xydata(), of_tokens[["depth", "effective_rank"]])
        assert set(images.get_ydata()) == {2.0}
        assert set(most.get_ydata()) == {8}
