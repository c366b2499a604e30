import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from scipy.stats import binomtest

from tests.helpers.claims import published
from tests.helpers.drawing import drawn_from
from tests.measures.robustness.test_compute import corruption_error
from vitscope.corruptions import CORRUPTIONS
from vitscope.drawing.figure import Member

MEMBERS = [Member("resnet0", "resnet 0", "resnet"), Member("vit1", "vit 1", "vit")]
LABELS = {"gaussian_noise": "Gaussian noise", "jpeg_compression": "JPEG compression"}


def robustness(model: str, seed: int, corruptions: tuple[str, ...] = CORRUPTIONS) -> pd.DataFrame:
    draw, images = np.random.default_rng(seed), 100
    rows = [("none", 0), *((name, s) for name in corruptions for s in range(1, 6))]
    table = pd.DataFrame(rows, columns=["corruption", "severity"])
    expected = 0.9 - 0.12 * table["severity"] + draw.uniform(-0.1, 0.1, len(table))
    right = [draw.random(images) < each for each in expected]
    accuracy = np.mean(right, axis=1)
    scores = {"accuracy": accuracy, "nll": 3 * (1 - accuracy), "ece": accuracy / 4}
    return table.assign(model=model, images=images, **scores, right=right)


def of_model(table: pd.DataFrame, member: Member) -> pd.DataFrame:
    return table[table["model"] == member.model]


def drawn(corruptions=CORRUPTIONS):
    tables = [robustness(m.model, i, corruptions) for i, m in enumerate(MEMBERS)]
    both = {
        "robustness": pd.concat(tables).drop(columns="right").sample(frac=1, random_state=0),
        "corruption_error": pd.concat(map(corruption_error, tables)).sample(frac=1, random_state=0),
    }
    return drawn_from("robustness", both, MEMBERS), both


def test_scores_by_severity_are_means_over_corruptions():
    figure, tables = drawn()
    for axes, column, scale in zip(
        figure.axes, ["accuracy", "nll", "ece"], [100, 1, 100], strict=False
    ):
        for line, member in zip(axes.lines, MEMBERS, strict=True):
            rows = of_model(tables["robustness"], member)
            np.testing.assert_array_equal(line.get_xdata(), range(6))
            expected = [scale * rows.loc[rows["severity"] == s, column].mean() for s in range(6)]
            np.testing.assert_allclose(line.get_ydata(), expected, rtol=1e-12)


def test_errors_are_those_of_the_table_in_the_order_of_the_groups():
    figure, tables = drawn()
    axes = figure.axes[3]
    labels = [text.get_text() for text in axes.get_yticklabels()]
    in_words = [LABELS.get(name, name.replace("_", " ")) for name in CORRUPTIONS]
    assert labels == ["no corruption", "mean of corruptions", *in_words]
    for line, member in zip(axes.lines, MEMBERS, strict=True):
        rows = of_model(tables["corruption_error"], member).set_index("corruption")
        expected = [rows["clean_error"].iloc[0], *rows["error"].loc[["mean", *CORRUPTIONS]]]
        np.testing.assert_allclose(line.get_xdata(), 100 * np.array(expected), rtol=1e-12)
        np.testing.assert_array_equal(line.get_ydata().round(), range(17))
    # Behind each marker its interval, in its row.
    for bars, line, member in zip(axes.collections, axes.lines, MEMBERS, strict=False):
        rows = of_model(tables["corruption_error"], member).set_index("corruption")
        count = int(rows["images"].iloc[0])
        clean = binomtest(round(count * rows["clean_error"].iloc[0]), count)
        ends = [[*clean.proportion_ci(method="wilson")]]
        ends += rows.loc[["mean", *CORRUPTIONS], ["ci_low", "ci_high"]].to_numpy(float).tolist()
        shown = np.array(bars.get_segments())
        np.testing.assert_allclose(shown[..., 0], 100 * np.array(ends))
        np.testing.assert_array_equal(shown[:, 0, 1], line.get_ydata())
        assert to_hex(bars.get_color()[0]) == line.get_color()


def test_a_study_of_few_corruptions():
    figure, _ = drawn(corruptions=("fog", "contrast", "snow"))
    labels = [text.get_text() for text in figure.axes[3].get_yticklabels()]
    assert labels == ["no corruption", "mean of corruptions", "snow", "fog", "contrast"]
    assert [text.get_text() for text in figure.axes[3].texts] == ["weather", "digital"]


@pytest.mark.parametrize("same_models", [True, False])
def test_models_stand_at_their_accuracy_and_robustness(same_models):
    tables = [corruption_error(robustness(m.model, i)) for i, m in enumerate(MEMBERS)]
    series = {"resnet0": "ResNet", "vit1": "ViT"}
    kind = "robustness_by_accuracy"
    theirs = published(kind, "fig12b.csv", series, same_models)
    figure = drawn_from(kind, {"corruption_error": pd.concat(tables)}, MEMBERS, theirs)
    assert len(figure.axes) == (1 if same_models else 2)
    points = [line.get_xydata().tolist() for line in figure.axes[0].lines]
    measured = [
        [[100 * (1 - rows["clean_error"].iloc[0]), 100 * (1 - rows["error"].iloc[-1])]]
        for rows in tables
    ]
    expected = [[[82.48, 64.978]], [[66.51, 51.933]]]
    if same_models:
        np.testing.assert_allclose(points, [measured[0], expected[0], measured[1], expected[1]])
        return
    np.testing.assert_allclose(points, measured)
    assert [line.get_xydata().tolist() for line in figure.axes[1].lines] == expected
    across, upwards = (each.get_segments()[0] for each in figure.axes[0].collections[:2])
    wilson = binomtest(round(measured[0][0][0]), 100).proportion_ci(method="wilson")
    np.testing.assert_allclose(across[:, 0], [100 * wilson.low, 100 * wilson.high])
    ends = 100 * (1 - tables[0].iloc[-1][["ci_high", "ci_low"]].astype(float))
    np.testing.assert_allclose(upwards[:, 1], ends)
    assert [axes.get_title() for axes in figure.axes] == ["measured", "published"]
    # Intervals lie behind all points, in their colours, and paler.
    front = min(line.get_zorder() for line in figure.axes[0].lines)
    colors = [line.get_color() for line in figure.axes[0].lines for _ in range(2)]
    for interval, color in zip(figure.axes[0].collections, colors, strict=True):
        assert interval.get_zorder() < front
        assert to_hex(interval.get_color()[0]) == color
        assert interval.get_alpha() < 0.5
