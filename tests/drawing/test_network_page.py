from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import vitscope
from tests.helpers.drawing import styled
from tests.helpers.shown import flaws, legends_of
from vitscope.claims.verdicts import say_how_many
from vitscope.drawing.changes import Change
from vitscope.drawing.looks import VERDICT_LOOKS
from vitscope.drawing.network_page import plot_network_page
from vitscope.jobs.figures import (
    KINDS_OF_PAGE,
    kinds_for_network_page_job,
    models_counted_on_network_page,
)
from vitscope.measures.registry import kinds
from vitscope.studies.loading import BUNDLED_STUDIES, load_study

CLAIMS = pd.read_csv(Path(__file__).parents[1] / "expected" / "claims.csv")


def look(name, **options):
    bundled = vitscope.bundled(name)
    few = {key: bundled[key][:24] for key in ("images", "labels")}
    return vitscope.look(**bundled | few | options)


@pytest.fixture(scope="module")
def scope():
    return look("vit")


@pytest.fixture(scope="module")
def page(scope):
    figure = scope.overview()
    figure.draw_without_rendering()
    return figure


def panel(figure, label):
    (found,) = [each for each in figure.axes if each.get_ylabel().replace("\n", " ") == label]
    return found


@pytest.mark.parametrize(
    ("label", "table", "column"),
    [
        ("Feature map variance", "feature_variance", "variance"),
        ("Share within images", "spatial_share", "share"),
        ("Share of the mean token", "mean_token", "share"),
    ],
)
def test_curves_are_those_of_the_tables(scope, page, label, table, column):
    rows = scope.table(table).sort_values("index")
    points = np.column_stack([rows["depth"], rows[column]])
    lines = [line.get_xydata() for line in panel(page, label).lines]
    assert any(line.shape == points.shape and np.allclose(line, points) for line in lines)


def spread_of_maps(maps):
    return maps.reshape(len(maps), -1).std(axis=1)


def test_changes_are_drawn_of_tables_in_memory_and_of_a_measure_of_ones_own(scope):
    own = scope.measure(spread_of_maps).sort_values("index")["value"]
    theirs = scope.table("feature_variance").sort_values("index")["variance"]
    shown = {"feature_variance": 100 * theirs.pct_change(), "spread_of_maps": own.diff()}
    for kind, expected in shown.items():
        (axes,) = scope.plot(kind, change=True).axes
        heights = [bar.get_height() for bar in axes.patches if not bar.get_hatch()]
        np.testing.assert_allclose(heights, expected.dropna(), rtol=1e-9)
        assert axes.get_ylabel().startswith("Change of ")


def test_the_strip_has_a_piece_for_each_block(scope, page):
    strip = panel(page, "blocks")
    assert len(strip.patches) == len(scope.blocks) - 1
    ends = sorted(patch.get_x() for patch in strip.patches)
    np.testing.assert_allclose(ends, scope.blocks["depth"].sort_values()[:-1])


def test_the_page_says_how_much_of_the_network_is_read(scope, page):
    texts = [text.get_text() for axes in page.axes for text in axes.texts]
    assert scope.read == "24 of 24 sums, 12 of 12 attentions, 100% of the operations"
    assert texts.count(f"read: {scope.read}") == 1


def test_verdicts_are_those_of_the_claims(scope, page):
    counted = scope.counted("feature_variance", "spatial_share")
    texts = [text.get_text().replace("\n", " ") for axes in page.axes for text in axes.texts]
    for row in counted.to_dict("records"):
        assert f"{row['statement']}{say_how_many(row)}" in texts
    marks = {f"{look.mark} " for look in VERDICT_LOOKS.values()}
    known = scope.counted(*KINDS_OF_PAGE)
    assert sum(text in marks for text in texts) >= known["holds"].notna().sum()


def test_nothing_leaves_the_page(page):
    for axes in page.axes:
        for text in axes.texts:
            box = text.get_window_extent()
            assert box.x0 >= 0
            assert box.x1 <= page.bbox.x1, text.get_text()


def assert_all_has_its_place(figure):
    """Nothing is cut off, and no text lies over another, or over the legend."""
    assert flaws(figure) == []
    (legend,) = legends_of(figure)
    verdicts = [text.get_window_extent() for text in figure.axes[-1].texts]
    assert all(box.y1 < legend.get_window_extent().y0 for box in verdicts)


@pytest.mark.parametrize("name", ["vit", "resnet"])
def test_all_of_a_page_has_its_place(name, page):
    figure = page if name == "vit" else look(name).overview()
    figure.draw_without_rendering()
    assert_all_has_its_place(figure)


@pytest.mark.parametrize("count", [0, 1, 8, 60])
@pytest.mark.parametrize("panels", [["feature_variance"], ["feature_variance", "mean_token"] * 4])
def test_there_is_room_for_as_many_verdicts_as_there_are(scope, count, panels):
    known = CLAIMS[CLAIMS["holds"].notna()].drop_duplicates("statement").head(count)
    draw = [lambda axes, kind=kind: scope.plot(kind, ax=axes) for kind in panels]
    figure = styled(plot_network_page, "vit", scope.blocks, draw, known, scope.read)
    assert len(figure.axes[-1].texts) == 2 * len(known)
    assert len(known) == count
    assert_all_has_its_place(figure)


@pytest.mark.parametrize("high", [5, 100, 5000])
def test_labels_of_a_flat_panel_stand_apart_however_long_its_bars(scope, high):
    """Over several powers of ten, 1 and -1 would be written over 0."""

    def draw(axes):
        axes.bar([0.25, 0.75], [-high, high])
        Change("Change (%)", linear=1).scale(axes)

    figure = styled(plot_network_page, "vit", scope.blocks, [draw], CLAIMS.head(3), None)
    (_, axes, _) = figure.axes
    low, top = axes.get_ylim()
    assert low < -high < 0 < high < top
    assert 0 in axes.get_yticks()
    assert (1 in axes.get_yticks()) == (high < 100)
    assert flaws(figure) == []


def test_a_network_without_a_classifier_has_a_page():
    figure = look("resnet", labels=None, classes=None).overview()
    labels = [each.get_ylabel().replace("\n", " ") for each in figure.axes]
    assert labels[1:6] == [
        "Feature map variance",
        "Change of variance (%)",
        "Share within images",
        "Δ log amplitude at 1.0π",
        "Change of Δ log amplitude at 1.0π",
    ]


def test_each_panel_says_on_how_many_images(page, scope):
    images = f"{scope.table('feature_variance')['images'].iloc[0]} images"
    for label in ("Feature map variance", "Change of variance (%)"):
        said = [text.get_text() for text in panel(page, label).texts]
        assert any(text.endswith(images) for text in said)


def test_a_page_has_what_the_study_shows_of_the_network():
    mini = load_study(BUNDLED_STUDIES / "mini.yaml")
    assert kinds_for_network_page_job(mini, "cnn") == []
    assert kinds_for_network_page_job(mini, "vit_global") == ["feature_variance"]
    assert {"lesion", "mean_token", "attention_distance"} <= {
        *kinds_for_network_page_job(mini, "swin")
    }


def test_a_page_has_the_verdict_of_the_recipe_where_the_study_has_it():
    """The claims of a kind are counted on the trainings that figures with these claims show."""
    mini = load_study(BUNDLED_STUDIES / "mini.yaml")
    trainings = ["vit", "vit_1", "vit_2"]
    assert models_counted_on_network_page(mini, "feature_variance", "vit") == trainings
    assert models_counted_on_network_page(mini, "feature_variance", "vit_1") == [
        "vit_1",
        "vit",
        "vit_2",
    ]
    # The other trainings are in no figure of this kind, and pit was trained once.
    assert models_counted_on_network_page(mini, "fourier_depth", "vit") == ["vit"]
    assert models_counted_on_network_page(mini, "feature_variance", "pit") == ["pit"]


@pytest.mark.parametrize("name", ["mini", "cifar100", "paper", "probing"])
def test_a_page_asks_for_nothing_that_no_figure_measures(name):
    study = load_study(BUNDLED_STUDIES / f"{name}.yaml")
    for model in study.own_models:
        for kind in kinds_for_network_page_job(study, model):
            for table in kinds()[kind].tables:
                assert table == "blocks" or model in study.models_of(table), (model, kind)
