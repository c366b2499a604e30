"""Figures by epoch show their tables; shares of blocks are counted here block by block."""

from functools import cache

import numpy as np
import pandas as pd
import pytest

from tests.helpers.drawing import drawn_from, laid_out
from tests.helpers.shown import boxes_of, flaws, legend_labels, spans
from vitscope.drawing.charts import Chart, Curve, Rows
from vitscope.drawing.figure import Member
from vitscope.drawing.saving import style
from vitscope.errors import VitscopeError
from vitscope.measures.registry import kinds
from vitscope.package_data import STYLE

# For each kind that can be drawn by epoch: its table, the column, and whether MSAs are said to
# raise it; from the sentences of the captions.
VALUES = {
    "feature_variance": ("feature_variance", "variance", False),
    "normalized_variance": ("normalized_variance", "normalized_variance", False),
    "spatial_share": ("spatial_share", "share", False),
    "fourier_depth": ("fourier", "delta_log_amplitude", False),
    "token_similarity": ("token_similarity", "similarity", True),
    "mean_token": ("mean_token", "share", True),
    "effective_rank": ("singular_values", "effective_rank", False),
}
KINDS = ["stem", "msa", "mlp", "conv", "msa", "mlp", "conv", "msa"]
SIZES = [8, 8, 8, 8, 8, 8, 4, 4]  # The sixth block subsamples, and does not count.
EPOCHS = [0, 1, 3, 10, 86]
MEMBERS = [
    Member(f"{name}@epoch_{epoch}", f"{label}, epoch {epoch}", name, epoch)
    for name, label in (("vit", "ViT"), ("resnet", "ResNet"))
    for epoch in EPOCHS[: 5 if name == "vit" else 3]
]


@cache
def table(kind: str) -> pd.DataFrame:
    """A table of random values at the cut points of each model, in any order."""
    _, column, _ = VALUES[kind]
    rng = np.random.default_rng(0)
    depth = np.linspace(0, 1, len(KINDS))
    points = {"index": range(len(KINDS)), "kind": KINDS, "depth": depth, "images": 64}
    points |= {"height": SIZES, "width": SIZES, "ci_low": np.nan, "ci_high": np.nan}
    tables = []
    for member in MEMBERS:
        rows = pd.DataFrame(points).assign(model=member.model)
        rows[column] = rng.uniform(0.1, 1, len(KINDS))
        # Resamples leave no sign open.
        rows[f"{column}_resampled"] = [np.full(3, value) for value in rows[column]]
        if kind == "fourier_depth":
            half = rows.assign(frequency=0.5, **{column: 5.0})
            rows = pd.concat([rows.assign(frequency=1.0), half]).assign(measure="diagonal")
        if kind == "effective_rank":
            rows = pd.concat([rows.assign(of="tokens"), rows.assign(of="images", **{column: 9.0})])
        tables.append(rows)
    return pd.concat(tables).sample(frac=1, random_state=1)


def values_of(kind: str, model: str) -> np.ndarray:
    rows = table(kind)
    rows = rows[(rows["model"] == model) & (rows[VALUES[kind][1]] <= 1)]
    return rows.sort_values("index")[VALUES[kind][1]].to_numpy()


def draw(kind: str, members=MEMBERS, **options):
    tables = {VALUES[kind][0]: table(kind)}
    return laid_out(kind, tables, members, by_epoch=True, **options)


def test_every_kind_that_knows_changes_can_be_drawn_by_epoch():
    found = {name for name, kind in kinds().items() if "by_epoch" in kind.option_keys}
    # There an epoch has a column.
    assert found == {*VALUES, "without_scale"}
    assert {name for name, kind in kinds().items() if "change" in kind.option_keys} == {*VALUES}


@pytest.mark.parametrize("kind", VALUES)
def test_curves_and_shares_are_those_of_the_table(kind):
    figure = draw(kind)
    assert flaws(figure) == []
    above, below = figure.axes[:2], figure.axes[2:4]
    assert [axes.get_title().partition("\n")[0] for axes in above] == ["ViT", "ResNet"]
    rises = VALUES[kind][2]
    for of, curves, shares in zip(("vit", "resnet"), above, below, strict=True):
        models = [member.model for member in MEMBERS if member.family == of]
        assert len(curves.lines) == len(models)
        for line, model in zip(curves.lines, models, strict=True):
            depth = np.linspace(0, 1, len(KINDS))
            np.testing.assert_array_equal(line.get_xydata(), np.c_[depth, values_of(kind, model)])
        # Bands: three of MSAs, one of subsampling.
        assert len(spans(curves)) == 4
        for line, counted, up in zip(
            shares.lines, ("msa", "conv", "mlp"), (rises, not rises, not rises), strict=False
        ):
            expected = []
            for model in models:
                values = values_of(kind, model)
                blocks = [n for n in range(1, 8) if KINDS[n] == counted and n != 6]
                expected.append(np.mean([(values[n] > values[n - 1]) == up for n in blocks]))
            np.testing.assert_array_equal(line.get_xdata(), EPOCHS[: len(models)])
            np.testing.assert_allclose(line.get_ydata(), expected, rtol=0, atol=1e-12)
    does, other = ("raise", "lower") if rises else ("lower", "raise")
    words = {f"MSAs that {does} it", f"MLPs that {other} it", f"Convs that {other} it"}
    assert {*legend_labels(figure)} > words


@pytest.mark.parametrize("kind", ["variance_by_epoch", "share_by_epoch"])
def test_kinds_by_epoch_draw_as_the_option_does(kind):
    of = {"variance_by_epoch": "feature_variance", "share_by_epoch": "spatial_share"}[kind]
    tables = {VALUES[of][0]: table(of), "fourier": table("fourier_depth")}
    whole = drawn_from(kind, tables, MEMBERS)
    for ours, theirs in zip(draw(of).axes[:4], whole.axes[:4], strict=True):
        for one, other in zip(ours.lines, theirs.lines, strict=True):
            np.testing.assert_array_equal(one.get_xydata(), other.get_xydata())
        assert ours.get_yscale() == theirs.get_yscale()


def test_of_many_epochs_only_those_with_room_are_named():
    members = [Member("vit@epoch_0", f"ViT, epoch {n}", "vit", n) for n in range(101)]
    figure = draw("token_similarity", [*reversed(members)])
    assert flaws(figure) == []
    curves, shares = figure.axes[:2]
    assert len(curves.lines) == 101
    ticks = shares.get_xticks()
    assert {0, 1, 100} <= {*ticks}
    assert len(ticks) < 12
    (bar,) = (axes for axes in figure.axes if axes.get_label() == "<colorbar>")
    assert [text.get_text() for text in bar.get_yticklabels()][::7] == ["0", "100"]


def test_one_epoch_can_be_drawn_too():
    figure = draw("token_similarity", MEMBERS[:1])
    assert flaws(figure) == []
    assert figure.axes[1].get_xticks().tolist() == [0]


@pytest.mark.parametrize("option", ["change", "together"])
def test_what_no_figure_by_epoch_shows_is_refused(option):
    with pytest.raises(VitscopeError, match="Figures by epoch show values alone"):
        draw("token_similarity", **{option: True})


def test_a_chart_that_says_nothing_of_changes_counts_where_its_first_curve_falls():
    chart = Chart(Rows("Size", Curve("variance")))
    with style(STYLE):
        figure = chart(table("feature_variance"), members=MEMBERS, by_epoch=True)
    for ours, theirs in zip(figure.axes[:4], draw("feature_variance").axes[:4], strict=True):
        for one, other in zip(ours.lines, theirs.lines, strict=True):
            np.testing.assert_array_equal(one.get_xydata(), other.get_xydata())
    assert figure.axes[2].get_ylabel() == "Share of blocks by\nchange of size"


def test_labels_say_which_change_is_counted():
    words = [text.replace("\n", " ") for text, _ in boxes_of(draw("effective_rank"))]
    assert "Share of blocks by change of effective rank of tokens" in words
