import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from vitscope.drawing.figure import Member
from vitscope.drawing.looks import look_of

LABELS = ["ResNet-50", "ViT-Ti", "PiT-Ti", "Swin-Ti", "AlterNet-50", "MLP-Mixer", "DeiT (ImageNet)"]
FAMILIES = ["resnet", "vit", "pit", "swin", "alternet", "mixer", "convnext"]
MEMBERS = [Member(f, label, f) for f, label in zip(FAMILIES, LABELS, strict=True)]


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
        }
    )


ALL = pd.concat([measured(name, 0.08 * (i + 1), 0.4) for i, name in enumerate(FAMILIES)]).sample(
    frac=1, random_state=0
)


@pytest.fixture
def drawn(drawn_from):
    def draw_it(members=MEMBERS[:2], table=ALL):
        return drawn_from("shape_texture", {"shape_texture": table}, members)

    return draw_it


def whole_of(model):
    return ALL[(ALL["model"] == model) & (ALL["class_name"] == "all")].iloc[0]


def test_bars_show_what_tells_the_images(drawn):
    figure = drawn(MEMBERS[:6])
    bars = figure.axes[0].patches
    assert len(bars) == 18
    for height, model in enumerate(FAMILIES[:6]):
        row = whole_of(model)
        shape, texture = row["shape_accuracy"], row["texture_accuracy"]
        own = bars[3 * height : 3 * height + 3]
        widths = [bar.get_width() for bar in own]
        assert widths == pytest.approx([shape, texture, 1 - shape - texture])
        assert [bar.get_x() for bar in own] == pytest.approx([0, shape, shape + texture])
        assert {round(bar.get_y() + bar.get_height() / 2, 9) for bar in own} == {height}


def test_markers_and_lines_show_the_bias_and_its_interval(drawn):
    bias = drawn(MEMBERS[:6]).axes[1]
    half, *lines = bias.lines
    assert list(half.get_xdata()) == [0.5, 0.5]
    for height, model in enumerate(FAMILIES[:6]):
        row = whole_of(model)
        shapes = ALL[(ALL["model"] == model) & (ALL["class_name"] != "all")]
        ticks, marker = lines[2 * height : 2 * height + 2]
        np.testing.assert_array_equal(ticks.get_xdata(), shapes["shape_bias"])
        assert set(ticks.get_ydata()) == {height}
        assert marker.get_xydata().tolist() == [[row["shape_bias"], height]]
        look = look_of(model)
        assert (marker.get_color(), marker.get_marker()) == (look.color, look.marker)
        (segment,) = bias.collections[height].get_segments()
        assert segment.tolist() == [[row["ci_low"], height], [row["ci_high"], height]]
        assert to_hex(bias.collections[height].get_color()[0]) == look.color


def test_the_first_model_is_on_top_and_both_axes_are_whole(drawn):
    decisions, bias = drawn(MEMBERS[:3]).axes
    labels = [label.get_text() for label in decisions.get_yticklabels()]
    assert labels == LABELS[:3]
    for axes in (decisions, bias):
        assert axes.get_xlim() == (0, 1)
        bottom, top = axes.get_ylim()
        assert top < 0 < 2 < bottom


def test_colours_of_cues_are_no_family_s(drawn):
    colors = [to_hex(bar.get_facecolor()) for bar in drawn().axes[0].patches[:3]]
    assert len(set(colors)) == 3
    assert not set(colors) & {look_of(family).color for family in FAMILIES}


def test_a_model_that_decides_for_neither_has_no_marker(drawn):
    lost = measured("resnet", 0.1, 0.4)
    lost[["shape_accuracy", "texture_accuracy"]] = 0.0
    lost[["shape_bias", "ci_low", "ci_high"]] = np.nan
    figure = drawn(MEMBERS[:1], lost)
    assert [bar.get_width() for bar in figure.axes[0].patches] == [0, 0, 1]
    assert np.isnan(figure.axes[1].lines[-1].get_xdata()).all()
