import numpy as np
import pandas as pd
import pytest

from tests.helpers.claims import published
from tests.helpers.drawing import RESNET, VIT, drawn_from
from tests.helpers.shown import legend_labels
from vitscope.drawing.figure import Member
from vitscope.drawing.looks import look_of
from vitscope.measures.scores import calibration_scores, scores_by_confidence, scores_of
from vitscope.package_data import PUBLISHED_POINTS

METRICS = ("error_percent", "nll_train")
FAMILIES = ["resnet", "vit", "pit", "swin", "alternet", "mixer"]
MEMBERS = [Member(family, family, family) for family in FAMILIES]
ERRORS = [5.5, 13.6, 13.4, 21.9, 5.4, 16.1]
# From the smallest error to the largest.
ORDER = [name for _, name in sorted(zip(ERRORS, FAMILIES, strict=True))]
SERIES = {
    "fit": {"resnet": "R", "vit": "ViT", "pit": "PiT", "swin": "Swin", "mixer": "Mixer"},
    "fit_by_window": {"resnet": "3x3", "vit": "5x5", "mixer": "8x8"},
}
FILES = {"fit": "fig5.csv", "fit_by_window": "fig7a.csv"}


def rows(model: str, error: float) -> pd.DataFrame:
    table = pd.DataFrame({"metric": METRICS, "images": [2000, 1000], "model": model})
    values = {"value": [error, 0.7 + error / 50]}
    return table.assign(**values, ci_low=[error - 1, np.nan], ci_high=[error + 1.5, np.nan])


TABLE = pd.concat(map(rows, FAMILIES, ERRORS)).sample(frac=1, random_state=0)


def marks(axes, face):
    lines = [line for line in axes.lines if line.get_marker() != "None"]
    return [line for line in lines if (line.get_markerfacecolor() == "white") == (face == "open")]


@pytest.mark.parametrize("kind", ["fit", "fit_by_window"])
def test_points_and_intervals_show_the_table(kind):
    (axes,) = drawn_from(kind, {"fit": TABLE}, MEMBERS).axes
    indexed = TABLE.set_index(["model", "metric"])
    filled = marks(axes, "filled")
    for place, (mark, model) in enumerate(zip(filled, FAMILIES, strict=True)):
        error, loss = (indexed.loc[(model, metric)] for metric in METRICS)
        look = look_of(Member(model, model, model))
        assert mark.get_xydata().tolist() == [[error["value"], loss["value"]]]
        assert (mark.get_color(), mark.get_marker()) == (look.color, look.marker)
        across, up = axes.collections[2 * place : 2 * place + 2]
        ends = [[error[end], loss["value"]] for end in ("ci_low", "ci_high")]
        assert [each.tolist() for each in across.get_segments()] == [ends]
        # The loss has no interval.
        assert not sum(segment.size for segment in up.get_segments())
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("Test error (%)", "Training NLL")


@pytest.mark.parametrize("same_models", [True, False])
@pytest.mark.parametrize("kind", ["fit", "fit_by_window"])
def test_published_points_are_open_and_of_other_models_in_a_panel_of_their_own(kind, same_models):
    file, series = FILES[kind], SERIES[kind]
    points = published(kind, file, series, same_models)
    figure = drawn_from(kind, {"fit": TABLE}, MEMBERS, points)
    theirs = pd.read_csv(PUBLISHED_POINTS / file).set_index(["model", "metric"])["value"]
    assert len(figure.axes) == (1 if same_models else 2)
    shown = [series[name] for name in FAMILIES if name in series]
    found = [mark.get_xydata().tolist() for mark in marks(figure.axes[-1], "open")]
    assert found == [[[theirs[name, metric] for metric in METRICS]] for name in shown]


def test_trainings_of_a_recipe_look_alike_and_recipes_of_one_family_do_not():
    recipes = [0, 0, 0, 3, 4, 4]
    names = [f"m{n}" for n in range(6)]
    members = [
        Member(name, name, "vit", recipe=f"m{of}") for name, of in zip(names, recipes, strict=True)
    ]
    table = pd.concat([rows(name, 10 + nth) for nth, name in enumerate(names)])
    figure = drawn_from("fit_by_window", {"fit": table}, members)
    (axes,) = figure.axes
    looks = [(mark.get_color(), mark.get_marker()) for mark in marks(axes, "filled")]
    assert [looks.index(look) for look in looks] == recipes
    assert len({marker for _, marker in looks}) == 3
    assert legend_labels(figure)[:3] == ["m0", "m3", "m4"]


BOTH = (RESNET, VIT)


def measured(model: str, shape: float, texture: float) -> pd.DataFrame:
    """The table of a model: all images, and three shapes around them."""
    factor = np.array([1, 0.5, 1.0, 1.5])
    bias = shape / (shape + texture) * factor
    table = pd.DataFrame({"class_name": ["all", "disk", "ring", "star"], "shape_bias": bias})
    table = table.assign(shape_accuracy=shape * factor, texture_accuracy=texture, model=model)
    table[["consistency", "consistency_low", "consistency_high"]] = np.nan
    return table.assign(ci_low=bias - 0.02, ci_high=bias + 0.03)


ALL = pd.concat([measured("vit", 0.16, 0.4), measured("resnet", 0.08, 0.4)])


def test_bars_and_markers_show_the_table():
    figure = drawn_from("shape_texture", {"shape_texture": ALL}, BOTH)
    decisions, bias = figure.axes
    _, *lines = bias.lines
    for height, member in enumerate(BOTH):
        of_model = ALL[ALL["model"] == member.model]
        (row,) = of_model[of_model["class_name"] == "all"].to_dict("records")
        shape, texture = row["shape_accuracy"], row["texture_accuracy"]
        bars = decisions.patches[3 * height : 3 * height + 3]
        widths = [bar.get_width() for bar in bars]
        assert widths == pytest.approx([shape, texture, 1 - shape - texture])
        assert [bar.get_x() for bar in bars] == pytest.approx([0, shape, shape + texture])
        assert {round(bar.get_y() + bar.get_height() / 2, 9) for bar in bars} == {height}

        shapes = of_model[of_model["class_name"] != "all"]
        ticks, marker = lines[2 * height : 2 * height + 2]
        np.testing.assert_array_equal(ticks.get_xdata(), shapes["shape_bias"])
        assert set(ticks.get_ydata()) == {height}
        assert marker.get_xydata().tolist() == [[row["shape_bias"], height]]
        (segment,) = bias.collections[height].get_segments()
        assert segment.tolist() == [[row["ci_low"], height], [row["ci_high"], height]]
    # The first model is on top.
    bottom, top = decisions.get_ylim()
    assert top < 0 < 1 < bottom


def test_a_model_that_decides_for_neither_has_no_marker():
    lost = measured("resnet", 0.1, 0.4)
    lost[["shape_accuracy", "texture_accuracy"]] = 0.0
    lost[["shape_bias", "ci_low", "ci_high"]] = np.nan
    figure = drawn_from("shape_texture", {"shape_texture": lost}, BOTH[:1])
    assert [bar.get_width() for bar in figure.axes[0].patches] == [0, 0, 1]
    assert np.isnan(figure.axes[1].lines[-1].get_xdata()).all()


def test_people_and_published_networks_stand_below():
    others = {name: name for name in ("people", "ResNet-50")}
    theirs = published("shape_texture", "cue_conflict.csv", others)
    figure = drawn_from("shape_texture", {"shape_texture": ALL}, BOTH, theirs)
    decisions, bias, consistency = figure.axes
    assert [label.get_text() for label in decisions.get_yticklabels()][2:] == [*others]
    widths = [bar.get_width() for bar in decisions.patches[9:12]]
    assert widths == pytest.approx([162 / 1200, 572 / 1200, 466 / 1200])
    # Ticks of 16 categories, then the marker of all.
    *_, ticks, marker = bias.lines
    assert len(ticks.get_xdata()) == 16
    assert marker.get_xydata().tolist() == [[162 / 734, 3]]
    shown = [line.get_xydata()[0].tolist() for line in consistency.lines[:-1]]
    assert shown[2:] == [[pytest.approx(0.331, abs=5e-4), 2], [pytest.approx(0.067, abs=5e-4), 3]]


def test_consistency_has_its_interval():
    values = {"consistency": 0.2, "consistency_low": 0.1, "consistency_high": 0.4}
    figure = drawn_from("shape_texture", {"shape_texture": ALL.assign(**values)}, BOTH)
    assert len(figure.axes) == 3
    (segment,) = figure.axes[2].collections[0].get_segments()
    assert segment.tolist() == [[0.1, 0], [0.4, 0]]


def predicted(overconfidence: float, images: int = 400) -> pd.DataFrame:
    """Predictions of ten classes, none with a confidence from 0.3 to 0.5."""
    generator = np.random.default_rng(0)
    confidence = generator.choice([0.15, 0.25, 0.55, 0.65, 0.75, 0.85, 0.95], images)
    confidence += generator.uniform(-0.04, 0.04, images)
    right = generator.random(images) < confidence - overconfidence
    label = generator.integers(10, size=images)
    prediction = np.where(right, label, (label + 1) % 10)
    columns = {"label": label, "prediction": prediction, "confidence": confidence}
    return pd.DataFrame({**columns, "nll": 1.0, "brier": 0.5, "top5": True})


def tables_of(predictions: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    bins = [scores_by_confidence(own).assign(model=name) for name, own in predictions.items()]
    scores = [
        {"model": name, "images": len(own)} | scores_of(own, 10) | calibration_scores(own, 50, 0)
        for name, own in predictions.items()
    ]
    return {
        "reliability": pd.concat(bins).sample(frac=1, random_state=0),
        "classification": pd.DataFrame(scores).sample(frac=1, random_state=1),
    }


TABLES = tables_of({"resnet": predicted(-0.3), "vit": predicted(0.2)})


def drawn(members=BOTH, tables=TABLES):
    axes = drawn_from("reliability", tables, members).axes
    # The diagrams, and the histograms below them.
    return axes[: len(members)], axes[len(members) :]


def boxes(container):
    frame = pd.DataFrame(
        [(b.get_x(), b.get_width(), b.get_y(), b.get_height()) for b in container],
        columns=["x", "width", "y", "height"],
    )
    return frame.sort_values("x", ignore_index=True)


def test_panels_show_the_table():
    for axes, histogram, member in zip(*drawn(), BOTH, strict=True):
        bins = TABLES["reliability"].query(f"model == '{member.model}'").sort_values("bin")
        filled = bins[bins["images"] > 0]
        assert filled["bin"].tolist() == [1, 2, 5, 6, 7, 8, 9]
        accuracy, gap = map(boxes, axes.containers)
        for bars in (accuracy, gap):
            np.testing.assert_allclose(bars["x"], filled["low"])
            np.testing.assert_allclose(bars["x"] + bars["width"], filled["high"])
        np.testing.assert_array_equal(accuracy["y"], 0)
        np.testing.assert_allclose(accuracy["height"], filled["accuracy"])
        ends = np.sort(np.c_[gap["y"], gap["y"] + gap["height"]], axis=1)
        np.testing.assert_allclose(ends, np.sort(filled[["accuracy", "confidence"]], axis=1))
        shares = boxes(histogram.containers[0])
        np.testing.assert_allclose(shares["x"], bins["low"], atol=1e-12)
        np.testing.assert_allclose(shares["height"], bins["images"] / 400)


def test_bins_of_a_few_images_are_left_out_and_others_have_wilsons_interval():
    few = TABLES["reliability"].query("model == 'resnet'").sort_values("bin")
    images = few["images"].where(few["bin"] != 6, 9)
    bins = few.assign(images=images.where(few["bin"] != 5, 10), accuracy=few["accuracy"].round(1))
    tables = {**TABLES, "reliability": bins}
    (axes,), (histogram,) = drawn(BOTH[:1], tables)
    kept = bins[bins["images"] >= 10]
    assert 5 in kept["bin"].to_numpy()
    assert 6 not in kept["bin"].to_numpy()
    np.testing.assert_allclose(boxes(axes.containers[0])["x"], kept["low"])
    # The share of images is shown of every bin.
    assert len(boxes(histogram.containers[0])) == len(bins)
    # Wilson 1927, with z of 95 %: (p + z²/2n ± z sqrt(p (1 - p)/n + z²/4n²)) / (1 + z²/n).
    z, n = 1.959963984540054, kept["images"].to_numpy()
    hits = np.round(kept["accuracy"].to_numpy() * n)
    p = hits / n
    half = z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    ends = np.stack([p + z**2 / (2 * n) - half, p + z**2 / (2 * n) + half], axis=1)
    (lines,) = axes.collections
    found = [segment[:, 1] for segment in lines.get_segments()]
    np.testing.assert_allclose(found, ends / (1 + z**2 / n)[:, None], rtol=1e-9)


def test_bins_without_a_hit_have_a_gap():
    # All of one bin, and all wrong: the accuracy is 0, and seen.
    wrong = predicted(0).query("0.6 < confidence < 0.7")
    wrong = wrong.assign(prediction=(wrong["label"] + 1) % 10)
    (axes,), _ = drawn(BOTH[:1], tables_of({"resnet": wrong}))
    accuracy, gap = map(boxes, axes.containers)
    assert accuracy["height"].tolist() == [0]
    assert gap["height"].tolist() == pytest.approx([wrong["confidence"].mean()])


def test_scores_are_written_out():
    scores = TABLES["classification"].set_index("model")
    for axes, member in zip(drawn()[0], BOTH, strict=True):
        found = scores.loc[member.model]
        accuracy, ece, signed, calibrated = (
            100 * found[["accuracy", "ece", "signed_ece", "ece_calibrated"]]
        )
        # One is made to be less confident than right, the other more.
        sure = "underconfident" if member is RESNET else "overconfident"
        assert axes.texts[0].get_text().split("\n") == [
            f"accuracy {accuracy:.1f} %, NLL {found['nll']:.2f}",
            f"{sure} by {abs(signed):.1f} %",
            f"ECE {ece:.1f} % (calibrated: {calibrated:.1f} %)",
        ]
