import numpy as np
import pandas as pd
import pytest

from tests.helpers.drawing import RESNET, VIT
from vitscope.measures.scores import calibration, reliability, scores_of

MEMBERS = (RESNET, VIT)


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
    """The tables of models, in no particular order."""
    bins = [reliability(own).assign(model=name) for name, own in predictions.items()]
    scores = [
        {"model": name, "images": len(own)} | scores_of(own, 10) | calibration(own, 50, 0)
        for name, own in predictions.items()
    ]
    return {
        "reliability": pd.concat(bins).sample(frac=1, random_state=0),
        "classification": pd.DataFrame(scores).sample(frac=1, random_state=1),
    }


TABLES = tables_of({"resnet": predicted(-0.3), "vit": predicted(0.2)})


@pytest.fixture
def drawn(drawn_from):
    def draw_it(members=MEMBERS, tables=TABLES):
        axes = drawn_from("reliability", tables, members).axes
        # The diagrams, and the histograms below them.
        return axes[: len(members)], axes[len(members) :]

    return draw_it


def boxes(container):
    frame = pd.DataFrame(
        [(b.get_x(), b.get_width(), b.get_y(), b.get_height()) for b in container],
        columns=["x", "width", "y", "height"],
    )
    return frame.sort_values("x", ignore_index=True)


def test_panels_show_the_table(drawn):
    for axes, histogram, member in zip(*drawn(), MEMBERS, strict=True):
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


def test_bins_without_a_hit_have_a_gap(drawn):
    # All of one bin, and all wrong: the accuracy is 0, and seen.
    wrong = predicted(0).query("0.6 < confidence < 0.7")
    wrong = wrong.assign(prediction=(wrong["label"] + 1) % 10)
    (axes,), _ = drawn(MEMBERS[:1], tables_of({"resnet": wrong}))
    accuracy, gap = map(boxes, axes.containers)
    assert accuracy["height"].tolist() == [0]
    assert gap["height"].tolist() == pytest.approx([wrong["confidence"].mean()])


def test_scores_are_written_out(drawn):
    scores = TABLES["classification"].set_index("model")
    for axes, member in zip(drawn()[0], MEMBERS, strict=True):
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
