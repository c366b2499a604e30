import numpy as np
import pandas as pd
import pytest

from tests.helpers.drawing import RESNET, VIT, drawn_from
from vitscope.drawing.looks import depth_color

BOTH = (VIT, RESNET)


@pytest.fixture
def norms(table: pd.DataFrame) -> pd.DataFrame:
    """Norms that grow with depth, and outliers in a corner from the middle on."""
    base = 1 + table["depth"]
    share = (table["depth"] - 0.5).clip(lower=0) / 10
    positions = [
        [each * height * width, *[0.0] * (height * width - 1)]
        for each, height, width in zip(share, table["height"], table["width"], strict=True)
    ]
    factors = {"lowest": 0.5, "quartile": 0.9, "median": 1, "third_quartile": 1.1, "highest": 4}
    columns = {name: base * factor for name, factor in factors.items()}
    return table.assign(
        **columns, threshold=3.0, outliers=share, ci_low=share * 0.9, ci_high=share * 1.1,
        positions=positions,
    )  # fmt: skip


def test_norms_and_outliers_by_depth(norms):
    figure = drawn_from("token_norms", {"token_norms": norms}, BOTH)
    *each, of_all = figure.axes
    for axes, outliers, member in zip(each, of_all.lines, BOTH, strict=True):
        rows = norms[norms["model"] == member.model].sort_values("index")
        for line, column in ((axes.lines[0], "median"), (outliers, "outliers")):
            np.testing.assert_array_equal(line.get_xydata(), rows[["depth", column]])
        low, high = axes.collections[1].get_datalim(axes.transData).intervaly
        assert (low, high) == (rows["lowest"].min(), rows["highest"].max())
    # Shares of tokens have a scale of their own, and no note says so of another quantity.
    assert each[0].get_ylim() == each[1].get_ylim() != of_all.get_ylim()
    assert [axes.get_ylabel() for axes in figure.axes] == ["Norm of a token", "", "Share of tokens"]
    assert "own scale" not in [text.get_text() for axes in figure.axes for text in axes.texts]


def test_a_network_without_outliers_has_a_scale(norms):
    none = norms.assign(outliers=0.0, ci_low=0.0, ci_high=0.0)
    figure = drawn_from("token_norms", {"token_norms": none}, (VIT,))
    assert figure.axes[1].get_ylim() == (0, 0.01)
    assert figure.axes[1].get_title() == "Norm > 3 × median"


def test_where_outliers_lie(norms):
    # A hundredth as many, which one scale for both would draw black.
    few = norms["model"] == "resnet"
    norms.loc[few, "outliers"] /= 100
    norms["positions"] = [
        [value / 100 for value in each] if rare else each
        for each, rare in zip(norms["positions"], few, strict=True)
    ]
    figure = drawn_from("token_outliers", {"token_norms": norms}, BOTH)
    for axes, member in zip(figure.axes, BOTH, strict=False):
        rows = norms[norms["model"] == member.model]
        most = rows.loc[rows["outliers"].idxmax()]
        (image,) = axes.images
        shape = (most["height"], most["width"])
        np.testing.assert_array_equal(image.get_array(), np.reshape(most["positions"], shape))
        share = "0.05" if member is RESNET else "5"
        assert axes.get_title() == member.label
        assert f"{most['name']}\n{share} % of tokens" in [text.get_text() for text in axes.texts]
        assert image.get_clim() == (0, max(most["positions"]))


def test_a_network_without_outliers_is_no_black_map(norms):
    none = norms["model"] == "resnet"
    norms.loc[none, "outliers"] = 0.0
    figure = drawn_from("token_outliers", {"token_norms": norms}, BOTH)
    # Others stand alone, and a note names it; where no network has any, each has its panel.
    titles = [axes.get_title() for axes in figure.axes if axes.get_title()]
    assert not any(title.startswith("ResNet-50") for title in titles)
    assert figure.get_suptitle().strip() == "No outliers: ResNet-50"
    figure = drawn_from("token_outliers", {"token_norms": norms[none]}, [RESNET])
    (resnet,) = figure.axes
    assert resnet.get_title() == "ResNet-50"
    assert not resnet.images
    assert [text.get_text() for text in resnet.texts] == ["none", "no outliers"]


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
