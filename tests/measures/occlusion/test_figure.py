import numpy as np
import pandas as pd
import pytest

from tests.helpers.claims import published
from tests.helpers.drawing import RESNET, VIT, drawn_from
from tests.helpers.shown import legend_labels
from vitscope.drawing.looks import GRAY

GRIDS, SHARES = [2, 4, 14], [0.25, 0.5, 0.75]


def measured(model: str, accuracy: float, chance: float = 0.1) -> pd.DataFrame:
    """The table of a model whose accuracy falls evenly by share, and by grid."""
    rows = [("none", 1, 0.0, accuracy)]
    rows += [("dropped", 14, share, accuracy * (1 - share)) for share in SHARES]
    rows += [("shuffled", grid, 0.0, accuracy / grid) for grid in GRIDS]
    table = pd.DataFrame(rows, columns=["change", "grid", "share", "accuracy"])
    low, high = table["accuracy"] - 0.05, table["accuracy"] + 0.02
    return table.assign(model=model, ci_low=low, ci_high=high, chance=chance)


BOTH = pd.concat([measured("vit", 0.9), measured("resnet", 0.8)]).sample(frac=1, random_state=0)


@pytest.mark.parametrize(
    ("kind", "across", "falls"),
    [
        ("occlusion", [0, 25, 50, 75], [1, 0.75, 0.5, 0.25]),
        ("shuffling", [1, *GRIDS], [1, 1 / 2, 1 / 4, 1 / 14]),
    ],
)
def test_one_panel_shows_the_accuracy_of_all_models_and_chance(kind, across, falls):
    figure = drawn_from(kind, {"occlusion": BOTH}, [RESNET, VIT])
    (axes,) = figure.axes
    resnet, vit, chance = axes.lines
    for line, clean in ((resnet, 80), (vit, 90)):
        np.testing.assert_allclose(line.get_xdata(), across)
        np.testing.assert_allclose(line.get_ydata(), clean * np.array(falls))
    assert set(chance.get_ydata()) == {10}
    for shade, clean in zip(axes.collections, (80, 90), strict=True):
        low, high = shade.get_datalim(axes.transData).intervaly
        assert (low, high) == pytest.approx((clean * falls[-1] - 5, clean + 2))
    assert legend_labels(figure) == ["ResNet-50", "ViT-Ti", "chance", "95 % interval"]


def test_a_grid_is_named_by_what_lies_along_its_sides():
    (axes,) = drawn_from("shuffling", {"occlusion": BOTH}, [VIT]).axes
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert labels == ["1×1", "2×2", "4×4", "14×14"]
    assert axes.get_xlim() == (1, 14)


def test_models_of_other_classes_have_a_line_of_chance_of_their_own():
    table = pd.concat([measured("vit", 0.9), measured("resnet", 0.8, chance=0.01)])
    (axes,) = drawn_from("occlusion", {"occlusion": table}, [RESNET, VIT]).axes
    assert [line.get_ydata()[0] for line in axes.lines[-2:]] == [1, 10]


def test_published_points_are_of_models_or_of_other_networks():
    theirs = published("occlusion", "occlusion.csv", {"vit": "DeiT-S", "DeiT-B": "DeiT-B"})
    figure = drawn_from("occlusion", {"occlusion": BOTH}, [RESNET, VIT], theirs)
    (axes,) = figure.axes
    _, vit, *_, of_vit, other = axes.lines
    np.testing.assert_allclose(of_vit.get_xydata(), [[50, 70]])
    np.testing.assert_allclose(other.get_xydata(), [[0, 81.7], [50, 75.5], [90, 37]])
    assert (of_vit.get_color(), other.get_color()) == (vit.get_color(), GRAY)
    assert {line.get_markerfacecolor() for line in (of_vit, other)} == {"white"}
    named = ["DeiT-S (published)", "DeiT-B (published)"]
    assert [label for label in legend_labels(figure) if "published" in label] == named
