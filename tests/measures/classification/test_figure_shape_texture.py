import numpy as np
import pandas as pd
import pytest

from tests.helpers.drawing import RESNET, VIT
from vitscope.claims.published import read_published
from vitscope.measures.registry import kinds
from vitscope.package_data import PUBLISHED_POINTS

MEMBERS = (RESNET, VIT)


def measured(model: str, shape: float, texture: float) -> pd.DataFrame:
    """The table of a model: all images, and three shapes around them."""
    factor = np.array([1, 0.5, 1.0, 1.5])
    bias = shape / (shape + texture) * factor
    return pd.DataFrame(
        {
            "model": model,
            "class_name": ["all", "disk", "ring", "star"],
            "images": [300, 100, 100, 100],
            "shape_accuracy": shape * factor,
            "texture_accuracy": texture,
            "shape_bias": bias,
            "ci_low": bias - 0.02,
            "ci_high": bias + 0.03,
            "consistency": np.nan,
            "consistency_low": np.nan,
            "consistency_high": np.nan,
        }
    )


ALL = pd.concat([measured("vit", 0.16, 0.4), measured("resnet", 0.08, 0.4)])


def test_bars_and_markers_show_the_table(drawn_from):
    figure = drawn_from("shape_texture", {"shape_texture": ALL}, MEMBERS)
    decisions, bias = figure.axes
    _, *lines = bias.lines
    for height, member in enumerate(MEMBERS):
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


def test_a_model_that_decides_for_neither_has_no_marker(drawn_from):
    lost = measured("resnet", 0.1, 0.4)
    lost[["shape_accuracy", "texture_accuracy"]] = 0.0
    lost[["shape_bias", "ci_low", "ci_high"]] = np.nan
    figure = drawn_from("shape_texture", {"shape_texture": lost}, MEMBERS[:1])
    assert [bar.get_width() for bar in figure.axes[0].patches] == [0, 0, 1]
    assert np.isnan(figure.axes[1].lines[-1].get_xdata()).all()


def test_people_and_published_networks_stand_below(drawn_from):
    path = PUBLISHED_POINTS / "cue_conflict.csv"
    columns = kinds()["shape_texture"].published
    others = {name: name for name in ("people", "ResNet-50")}
    published = read_published(path, columns, others)
    figure = drawn_from("shape_texture", {"shape_texture": ALL}, MEMBERS, published)
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


def test_consistency_has_its_interval(drawn_from):
    values = {"consistency": 0.2, "consistency_low": 0.1, "consistency_high": 0.4}
    figure = drawn_from("shape_texture", {"shape_texture": ALL.assign(**values)}, MEMBERS)
    assert len(figure.axes) == 3
    (segment,) = figure.axes[2].collections[0].get_segments()
    assert segment.tolist() == [[0.1, 0], [0.4, 0]]
