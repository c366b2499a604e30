import numpy as np
import pandas as pd
import pytest

from tests.helpers.claims import published
from tests.helpers.drawing import RESNET, VIT, drawn_from
from tests.helpers.shown import legend_labels, spans
from vitscope.claims.points import bands
from vitscope.drawing.figure import Member
from vitscope.errors import VitscopeError
from vitscope.package_data import PUBLISHED_POINTS

MEMBERS = (RESNET, VIT)
SERIES = {"resnet": "ResNet", "vit": "ViT"}


def drawn(table: pd.DataFrame, theirs=None, members=MEMBERS, **options):
    return drawn_from("feature_variance", {"feature_variance": table}, members, theirs, **options)


# The columns that figures with one value by depth and a panel per model show, by kind.
VALUES = {"feature_variance": "variance", "token_similarity": "similarity"}


@pytest.mark.parametrize("kind", VALUES)
def test_panels_show_the_table_in_order(table, kind):
    renamed = table.rename(columns={"variance": VALUES[kind]})
    figure = drawn_from(kind, {kind: renamed}, MEMBERS)
    for axes, member in zip(figure.axes, MEMBERS, strict=True):
        rows = table[table["model"] == member.model].sort_values("index")
        (line,) = axes.lines
        np.testing.assert_array_equal(line.get_xydata(), rows[["depth", "variance"]])
        low, high = axes.collections[0].get_datalim(axes.transData).intervaly
        assert (low, high) == (rows["ci_low"].min(), rows["ci_high"].max())


def test_models_together_share_a_panel_and_its_scale(table):
    """Trainings of one network are drawn like this, to show how much they differ."""
    seeds = [Member(f"vit_{seed}", f"ViT, seed {seed}", "vit") for seed in range(3)]
    rows = table[table["model"] == "vit"]
    trained = pd.concat([rows.assign(model=each.model) for each in seeds])
    figure = drawn(trained, members=seeds, together=True)
    (axes,) = figure.axes
    assert len({(line.get_color(), line.get_linestyle()) for line in axes.lines}) == 3
    assert {"ViT, seed 0", "ViT, seed 2", "95 % interval", "MSA"} <= {*legend_labels(figure)}
    assert len(spans(axes)) == (rows["kind"] == "msa").sum()
    assert axes.get_ylim()[0] == 0


def test_trainings_of_several_recipes_have_a_panel_for_each(table):
    recipes = {"resnet": RESNET.label, "vit": VIT.label}
    members = [
        Member(f"{recipe}_{seed}", f"{label}, seed {seed}", recipe, recipe=f"{recipe}_0")
        for recipe, label in recipes.items()
        for seed in range(3)
    ]
    rows = pd.concat(
        [table[table["model"] == each.family].assign(model=each.model) for each in members]
    )
    figure = drawn(rows, members=members, together=True)
    assert [axes.get_title() for axes in figure.axes] == [
        f"{RESNET.label}, seed 0",
        f"{VIT.label}, seed 0",
    ]
    for axes, recipe in zip(figure.axes, recipes, strict=True):
        of_recipe = table[table["model"] == recipe].sort_values("index")
        curves = [line for line in axes.lines if len(line.get_xdata()) == len(of_recipe)]
        assert len(curves) == 3
        for line in curves:
            np.testing.assert_array_equal(line.get_ydata(), of_recipe["variance"])
        assert len({(line.get_color(), line.get_linestyle()) for line in curves}) == 3
        # The bands are those of the recipe.
        assert len(spans(axes)) == len(bands(of_recipe))
    assert {each.label for each in members} <= {*legend_labels(figure)}


def test_bands_that_differ_are_left_out(table):
    (axes,) = drawn(table, together=True).axes
    assert len(axes.lines) == 2
    assert not spans(axes)


def test_published_curves_are_refused_where_models_are_together(table):
    theirs = published("feature_variance", "fig9.csv", SERIES)
    with pytest.raises(VitscopeError, match="leave `published` out of the figure, or `together`"):
        drawn(table, theirs, together=True)


def test_a_figure_that_begins_at_zero_can_be_made_logarithmic(table):
    figure = drawn(table)
    for axes in figure.axes:
        assert axes.get_ylim()[0] == 0
        axes.set_yscale("log")
        figure.draw_without_rendering()
        low, high = axes.get_ylim()
        lowest, highest = axes.dataLim.intervaly
        assert lowest / 10 < low < lowest
        assert highest < high < 10 * highest


def test_bands_lie_where_the_paper_has_them(table):
    bands = pd.read_csv(PUBLISHED_POINTS / "fig9_bands.csv").query("figure == 'fig9'")
    for axes, series in zip(drawn(table).axes, ["ResNet", "ViT"], strict=True):
        theirs = bands[bands["model"] == series]
        expected = theirs[["start_depth", "end_depth"]].sort_values("start_depth")
        # The poster draws its bands a little narrower than a block of ResNet.
        np.testing.assert_allclose(spans(axes), expected, atol=4e-3)


@pytest.mark.parametrize("same_models", [True, False])
def test_points_of_another_model_have_their_own_panel(table, same_models):
    theirs = published("feature_variance", "fig9.csv", SERIES, same_models)
    axes = drawn(table, theirs).axes
    assert [len(each.lines) for each in axes] == ([2, 2] if same_models else [1, 1, 1, 1])
    points = pd.read_csv(PUBLISHED_POINTS / "fig9.csv").set_index("model")["variance"]
    for each, series in zip(axes[-2:], SERIES.values(), strict=True):
        np.testing.assert_array_equal(each.lines[0].get_ydata(), points[series])
        assert each.lines[0].get_markerfacecolor() == "white"


KINDS = ["stem", "msa", "mlp", "msa", "mlp"]
# The variance after each block, and the component at the highest frequency, by epoch.
BY_EPOCH = {
    0: ([1, 1.1, 1.0, 1.2, 1.1], [-1, -2, -3, -2, -3]),
    10: ([1, 2, 3, 2.5, 4], [-1, -2, -1, -2, -1]),
    86: ([1, 0.5, 3, 2, 5], [-1, -2, -1, 0, -1]),
}
BY_EPOCH_MEMBERS = [
    Member("vit@epoch_0", "ViT, epoch 0", "vit", 0),
    Member("vit@epoch_10", "ViT, epoch 10", "vit", 10),
    Member("vit", "ViT", "vit", 86),
]


def points(which: int, **columns) -> pd.DataFrame:
    """Return a table of one of the two values, in random order: the figure sorts it."""
    index = np.arange(len(KINDS))
    known = {"index": index, "kind": KINDS, "depth": index / 4, "height": 8, "width": 8}
    tables = [
        pd.DataFrame(known | {"model": each.model, "value": BY_EPOCH[each.epoch][which]} | columns)
        for each in BY_EPOCH_MEMBERS
    ]
    return pd.concat(tables).sample(frac=1, random_state=0)


@pytest.fixture
def figure():
    variance = points(0).rename(columns={"value": "variance"})
    steps = [points(1, measure="diagonal", frequency=each) for each in (0.0, 0.5, 1.0)]
    fourier = pd.concat(steps).assign(ci_low=np.nan, ci_high=np.nan)
    fourier["delta_log_amplitude"] = fourier["value"] * fourier["frequency"]
    tables = {"feature_variance": variance, "fourier": fourier}
    return drawn_from("variance_by_epoch", tables, BY_EPOCH_MEMBERS)


def test_a_curve_for_each_epoch_is_the_table_in_order(figure):
    axes = figure.axes[0]
    assert axes.get_title() == "ViT"
    for line, (values, _) in zip(axes.lines, BY_EPOCH.values(), strict=True):
        np.testing.assert_array_equal(line.get_xydata(), np.c_[np.arange(5) / 4, values])


@pytest.mark.parametrize(
    ("row", "msa", "mlp"), [(1, [0, 0.5, 1], [0, 1, 1]), (2, [0.5, 1, 0.5], [0, 1, 0.5])]
)
def test_shares_are_counted_by_hand(figure, row, msa, mlp):
    axes = figure.axes[row]
    first, second, half = axes.lines
    for line, shares in ((first, msa), (second, mlp)):
        np.testing.assert_array_equal(line.get_xdata(), [0, 10, 86])
        np.testing.assert_allclose(line.get_ydata(), shares)
    np.testing.assert_array_equal(half.get_ydata(), [0.5, 0.5])


def test_changes_without_scale_are_those_of_maps_by_hand():
    """Ratios of total variance and share multiply to that of the variance."""
    draw = np.random.default_rng(0).normal
    scales = np.arange(1, 6)[:, None, None, None, None]
    maps = scales * draw(size=(5, 6, 4, 3, 3)) + draw(size=(5, 6, 4, 1, 1))
    within = maps.var(axis=(3, 4)).mean(axis=(1, 2))
    total = maps.var(axis=(1, 3, 4)).mean(axis=1)
    values = {
        "feature_variance": {"variance": maps.var(axis=(3, 4), ddof=1).mean(axis=(1, 2))},
        "spatial_share": {"total": total, "share": within / total},
        "normalized_variance": {"normalized_variance": [0.5, 0.7, 0.6, 0.9, 0.3]},
    }
    one = points(0).query("model == 'vit'").sort_values("index").drop(columns="value")
    tables = {name: one.assign(**columns) for name, columns in values.items()}
    ends = [-1.0, -2, -1.5, -1, -3]
    fourier = [
        one.assign(measure="diagonal", frequency=each, delta_log_amplitude=np.multiply(each, ends))
        for each in (0.0, 1.0)
    ]
    tables["fourier"] = pd.concat(fourier).assign(ci_low=np.nan, ci_high=np.nan)
    panels = drawn_from("without_scale", tables, BY_EPOCH_MEMBERS[-1:]).axes
    heights = [
        np.array([bar.get_height() for bar in sorted(each.patches, key=lambda bar: bar.get_x())])
        for each in panels
    ]
    ratios = [1 + each / 100 for each in heights[:4]]
    np.testing.assert_allclose(ratios[0], ratios[1] * ratios[2], rtol=1e-12)
    expected = [column for columns in values.values() for column in columns.values()]
    for found, column in zip(ratios, expected, strict=True):
        np.testing.assert_allclose(found, np.exp(np.diff(np.log(column))), rtol=1e-12)
    np.testing.assert_allclose(heights[4], np.diff(ends), rtol=1e-12)
