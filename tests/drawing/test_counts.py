"""On how many images and batches each panel was measured, of every kind of figure."""

from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tests.drawing.test_every_kind import MEMBERS, axes_of, rows_of
from tests.helpers.drawing import VIT, drawn_from, laid_out
from tests.helpers.shown import flaws
from vitscope.buildup.figure import plot_buildup
from vitscope.drawing.counts import count_of_panel, say_count, say_counts
from vitscope.drawing.figure import drawing_in
from vitscope.drawing.saving import read_facts, save, style
from vitscope.measures.registry import kinds
from vitscope.package_data import STYLE

# Kinds whose tables have neither images nor batches.
UNCOUNTED = {
    *("attention_heads", "attention_query", "attention_rollout", "class_maps", "token_pca"),
    *("patch_components", "patch_filters", "position_bias", "position_products"),
    *("position_similarity", "training", "trajectory"),
}
# How many panels each of two models has, if not one; and how many all models have together.
EACH = {
    "fourier": 2,
    "interpolation": 2,
    "plane": 2,
    "class_separation": 2,
    "probe": 2,
    "reliability": 2,
    "singular_values": 2,
    "share_by_epoch": 2,
    "curvature": 2,
    # The panels of two signs, at each of four moments.
    "hessian": 8,
}
TOGETHER = {
    "beside_people": 2,
    "curvature_by_layer": 2,
    "fit": 1,
    "fit_by_window": 1,
    "frequency_noise": 1,
    "hessian_by_batch": 4,
    "landscape_slices": 2,
    "occlusion": 1,
    "robustness_by_accuracy": 1,
    "shape_texture": 2,
    "shuffling": 1,
}
# Of kinds of several tables: how many panels of each model, or of all, each table has.
SEVERAL = {
    "averaging": {"fourier": 1, "feature_variance": 1, "reliability": 1},
    "robustness": {"robustness": 3, "corruption_error": 1},
    "variance_and_share": {"feature_variance": 1, "spatial_share": 1},
    "without_scale": {
        "normalized_variance": 1,
        "feature_variance": 1,
        "spatial_share": 2,
        "fourier": 1,
    },
    "variance_by_epoch": {"feature_variance": 2, "fourier": 1},
}
BY_BATCH = {"hessian": 6, "hessian_by_batch": 6, "curvature": 6, "curvature_by_layer": 6}
BY_BATCH |= {"cka": 21, "cka_between": 21}
# Tables of batches alone, all of one.
ONE_BATCH = {"hessian_density": 2, "loss_terms": 8}


def images_of(kind: str) -> dict[tuple[str, int], int]:
    """Return a number of images for each table of a kind and each of two models, all different."""
    names = [name for name in kinds()[kind].tables if name != "blocks"]
    return {
        (t, place): 1000 * (n + 1) + 100 * place for n, t in enumerate(names) for place in (1, 2)
    }


def tables_of(kind: str) -> dict[str, pd.DataFrame]:
    numbers = images_of(kind)
    found = {}
    for name in kinds()[kind].tables:
        rows = [rows_of(name, member.model) for member in MEMBERS[:2]]
        for place, each in enumerate(rows):
            if name == "reliability":
                # Bins of ten images each, but for one.
                rest = numbers[name, place + 1] - 10 * (len(each) - 1)
                rows[place] = each.assign(bin=0, images=[rest] + [10] * (len(each) - 1))
            elif "images" in each:
                rows[place] = each.assign(images=numbers[name, place + 1])
        if kinds()[kind].all_pairs and name == "cka_between":
            rows.append(rows[0].assign(other_model=MEMBERS[1].model))
        found[name] = pd.concat(rows)
    return found


def expected(kind: str) -> Counter[str]:
    """Return the counts that panels should have, and in how many."""
    if kind in ONE_BATCH:
        return Counter({"1 batch": ONE_BATCH[kind]})
    if kind == "similarity_matrix":
        # Of a pair of the first; neighbours are searched among fewer images.
        return Counter(["21 batches, 1,100 images", "252 images"])
    numbers, found = images_of(kind), Counter[str]()
    first = kinds()[kind].tables[0]
    shared = kind in TOGETHER or kind in ("averaging", "robustness")
    panels = SEVERAL.get(kind) or {first: TOGETHER.get(kind) or EACH.get(kind, 1)}
    batches = f"{BY_BATCH[kind]} batches, " if kind in BY_BATCH else ""
    each = " each" if batches and not kind.startswith("cka") else ""
    if kind == "token_norms":
        found["{:,} to {:,} images".format(*numbers.values())] = 1
    for name, count in panels.items():
        low, high = (f"{numbers[name, place]:,}" for place in (1, 2))
        for said in [f"{low} to {high}"] if shared else [low, high]:
            found[f"{batches}{said} images{each}"] += count
    return found


def notes_of(figure: Figure) -> list[str]:
    return [text.get_text() for axes in axes_of(figure) for text in axes.texts]


@pytest.mark.parametrize("kind", sorted({*kinds()} - UNCOUNTED))
def test_each_panel_counts_the_rows_that_it_draws(kind):
    figure = drawn_from(kind, tables_of(kind), MEMBERS[:2])
    counted = Counter(filter(None, map(count_of_panel, axes_of(figure))))
    assert counted == expected(kind)
    above = [text.get_text() for text in figure.texts]
    if len(counted) == 1:
        assert above[-1] == say_counts(figure) == next(iter(counted))
    else:
        # Each panel says its own, beside whether it has a scale of its own.
        written = Counter(
            each.splitlines()[-1].removeprefix("own scale, ") for each in notes_of(figure)
        )
        assert counted <= written
        assert all(f": {count}" in say_counts(figure) for count in counted)


@pytest.mark.parametrize("kind", sorted(UNCOUNTED))
def test_what_has_no_images_counts_none(kind):
    figure = drawn_from(kind, tables_of(kind), MEMBERS[:2])
    assert say_counts(figure) == ""


@pytest.mark.parametrize("kind", ["feature_variance", "averaging", "robustness", "reliability"])
@pytest.mark.parametrize("width", [3.504, 5.5])
def test_counts_over_panels_overlap_nothing(kind, width):
    figure = laid_out(kind, tables_of(kind), MEMBERS[:2], own={"width": width})
    assert flaws(figure) == []


def fits() -> pd.DataFrame:
    """A table of two quantities that were measured on other images."""
    rows = rows_of("fit", "vit")
    return rows.assign(images=rows["metric"].map({"error_percent": 2000, "nll_train": 1000}))


@pytest.mark.parametrize("kind", ["fit", "fit_by_window"])
def test_two_quantities_of_one_table_have_counts_of_their_own(kind):
    figure = drawn_from(kind, {"fit": fits()}, [VIT])
    said = "Test error (%): 2,000 images, Training NLL: 1,000 images"
    assert [text.get_text() for text in figure.texts] == [said]
    assert say_counts(figure) == said


def test_steps_of_a_build_up_are_counted(tmp_path: Path):
    rows = pd.read_csv(Path(__file__).parents[1] / "expected" / "buildup_fig12a.csv")
    steps = rows.assign(images=2000)
    with style(STYLE):
        figure = plot_buildup(steps, "ResNet")
    assert [text.get_text() for text in figure.texts] == ["2,000 images"]


def test_panels_in_axes_of_others_have_no_note_and_are_counted_all_the_same():
    axes: Axes = Figure().add_subplot()
    with drawing_in(axes):
        drawn_from("feature_variance", tables_of("feature_variance"), MEMBERS[:1])
    assert not axes.texts
    assert count_of_panel(axes) == "1,100 images"


def test_a_plot_that_counts_nothing_says_how_many_rows_were_measured():
    rows = rows_of("feature_variance", "vit").assign(images=[256] * 11 + [300])
    assert say_count(rows) == "256 to 300 images"
    assert say_count(rows.assign(images=1)) == "1 image"
    assert say_count(rows.drop(columns="images")) == ""


def test_facts_are_read_as_they_were_saved(tmp_path: Path):
    facts = {"Study": "a <b> & c", "Measured on": "Test error: 2,000 images, NLL: 1,000 images"}
    save(Figure(), tmp_path / "a.svg", "a", facts)
    assert read_facts(tmp_path / "a.svg") == facts


@pytest.mark.parametrize("width", [3.504, 5.5])
def test_a_title_of_the_figure_stands_below_its_count(width):
    rows = pd.concat([rows_of("hessian", member.model) for member in MEMBERS[:2]])
    sizes = pd.concat([rows.assign(images=size, bundled=size > 6) for size in (6, 16, 100)])
    tables = {"hessian": sizes}
    figure = laid_out("hessian_by_batch", tables, MEMBERS[:2], own={"width": width})
    assert "bundled" in figure.get_suptitle()
    assert flaws(figure) == []
