import numpy as np
import pandas as pd
import pytest

from vitscope.drawing.figure import Member
from vitscope.measures.scores import reliability, scores_of

LABELS = ["ResNet-50", "ViT-Ti", "PiT-Ti", "Swin-Ti", "AlterNet-50", "MLP-Mixer", "DeiT (ImageNet)"]
FAMILIES = ["resnet", "vit", "pit", "swin", "alternet", "mixer", "convnext"]
MEMBERS = [Member(f, label, f) for f, label in zip(FAMILIES, LABELS, strict=True)]


def predicted(overconfidence: float, seed: int = 0, images: int = 400) -> pd.DataFrame:
    """Predictions of ten classes, none with a confidence from 0.3 to 0.5."""
    generator = np.random.default_rng(seed)
    confidence = generator.choice([0.15, 0.25, 0.55, 0.65, 0.75, 0.85, 0.95], images)
    confidence += generator.uniform(-0.04, 0.04, images)
    right = generator.random(images) < confidence - overconfidence
    label = generator.integers(10, size=images)
    return pd.DataFrame(
        {
            "label": label,
            "prediction": np.where(right, label, (label + 1) % 10),
            "confidence": confidence,
            "nll": 1.0,
            "brier": 0.5,
            "top5": True,
        }
    )


def tables_of(predictions: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The tables of models, in no particular order."""
    bins = [reliability(own).assign(model=name) for name, own in predictions.items()]
    scores = [
        {"model": name, "images": len(own)} | scores_of(own, 10)
        for name, own in predictions.items()
    ]
    return {
        "reliability": pd.concat(bins).sample(frac=1, random_state=0),
        "classification": pd.DataFrame(scores).sample(frac=1, random_state=1),
    }


TABLES = tables_of({f: predicted(0.1 * (i - 3), i) for i, f in enumerate(FAMILIES)})


@pytest.fixture
def drawn(drawn_from):
    def draw_it(members=MEMBERS[:2], tables=TABLES):
        return drawn_from("reliability", tables, members)

    return draw_it


def parts(figure):
    """The diagrams, and the histograms below them."""
    half = len(figure.axes) // 2
    return figure.axes[:half], figure.axes[half:]


def boxes(container):
    return pd.DataFrame(
        [(b.get_x(), b.get_width(), b.get_y(), b.get_height()) for b in container],
        columns=["x", "width", "y", "height"],
    )


def bins_of(model, tables=TABLES):
    table = tables["reliability"]
    return table[table["model"] == model].sort_values("bin").reset_index(drop=True)


def sorted_boxes(container):
    return boxes(container).sort_values("x").reset_index(drop=True)


def test_panels_show_the_table(drawn):
    for axes, histogram, model, label in zip(
        *parts(drawn(MEMBERS[:6])), FAMILIES[:6], LABELS[:6], strict=True
    ):
        assert axes.get_title() == label
        bins = bins_of(model)
        filled = bins[bins["images"] > 0].reset_index(drop=True)
        assert filled["bin"].tolist() == [1, 2, 5, 6, 7, 8, 9]

        accuracy, gap = (sorted_boxes(container) for container in axes.containers)
        for drawn_bars in (accuracy, gap):
            np.testing.assert_allclose(drawn_bars["x"], filled["low"])
            np.testing.assert_allclose(drawn_bars["x"] + drawn_bars["width"], filled["high"])
        np.testing.assert_array_equal(accuracy["y"], 0)
        np.testing.assert_allclose(accuracy["height"], filled["accuracy"])
        ends = np.sort(np.c_[gap["y"], gap["y"] + gap["height"]], axis=1)
        np.testing.assert_allclose(ends, np.sort(filled[["accuracy", "confidence"]], axis=1))

        shares = sorted_boxes(histogram.containers[0])
        np.testing.assert_allclose(shares["x"], bins["low"], atol=1e-12)
        np.testing.assert_allclose(shares["height"], bins["images"] / 400)


def test_the_diagonal_is_where_a_model_is_calibrated(drawn):
    axes = drawn().axes[0]
    (line,) = axes.lines
    assert line.get_xydata().tolist() == [[0, 0], [1, 1]]
    assert axes.get_xlim() == axes.get_ylim() == (0, 1)


def test_bins_without_images_have_no_bars_and_those_without_a_hit_have_a_gap(drawn):
    # All of one bin, and all wrong: the accuracy is 0, and seen.
    wrong = predicted(0).query("0.6 < confidence < 0.7")
    wrong = wrong.assign(prediction=(wrong["label"] + 1) % 10)
    axes = drawn(MEMBERS[:1], tables_of({"resnet": wrong})).axes[0]
    accuracy, gap = map(boxes, axes.containers)
    assert accuracy["height"].tolist() == [0]
    assert gap["height"].tolist() == pytest.approx([wrong["confidence"].mean()])


def test_scores_are_written_out(drawn):
    figure = drawn()
    scores = TABLES["classification"].set_index("model")
    for axes, model in zip(parts(figure)[0], FAMILIES, strict=False):
        written = axes.texts[0].get_text()
        accuracy, ece, signed = 100 * scores.loc[model, ["accuracy", "ece", "signed_ece"]]
        expected = f"accuracy {accuracy:.1f} %, ECE {ece:.1f} % ({signed:+.1f} %)"
        assert written == expected.replace("-", "\N{MINUS SIGN}")
    assert "(\N{MINUS SIGN}" in figure.axes[0].texts[0].get_text()


def test_histograms_share_a_scale(drawn):
    limits = {axes.get_ylim() for axes in parts(drawn(MEMBERS[:6]))[1]}
    assert len(limits) == 1
    (limit,) = limits
    assert limit[0] == 0
    assert limit[1] > TABLES["reliability"]["images"].max() / 400
