import numpy as np
import pandas as pd
import pytest
from matplotlib.offsetbox import AnnotationBbox

from tests.helpers.claims import published
from tests.helpers.drawing import RESNET, VIT, drawn_from
from tests.helpers.shown import legend_labels
from vitscope.drawing.looks import GRAY
from vitscope.measures.disturbed.frequency_noise import noise_ring
from vitscope.package_data import PUBLISHED_POINTS

SERIES = {"resnet": "ResNet", "vit": "ViT"}
FREQUENCIES = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]


def measured(
    model: str, lowest: float, frequencies: list[float] = FREQUENCIES, size: int = 32
) -> pd.DataFrame:
    """Return a model's table, with a change that grows evenly to `lowest` at the last frequency."""
    change = lowest * np.arange(1, len(frequencies) + 1) / len(frequencies)
    table = pd.DataFrame({"model": model, "frequency": frequencies, "change": change})
    interval = {"ci_low": change - 2, "ci_high": change + 1}
    return table.assign(width=0.1, eps=0.7, image_size=size, **interval)


BOTH = pd.concat([measured("vit", -20), measured("resnet", -9)]).sample(frac=1, random_state=0)


def drawn(members=(RESNET, VIT), published=None, table=BOTH):
    return drawn_from("frequency_noise", {"frequency_noise": table}, members, published)


def curves(axes):
    return [line for line in axes.lines if len(line.get_xdata()) == len(FREQUENCIES)]


def pictures(axes):
    return [artist for artist in axes.artists if isinstance(artist, AnnotationBbox)]


def arrays(axes):
    """Return the rings and the pieces of noise above a panel, each from left to right."""
    found = [box.offsetbox.get_data() for box in pictures(axes)]
    return found[::2], found[1::2]


def test_one_panel_shows_the_table_of_all_models():
    (axes,) = drawn().axes
    for line, shade, model in zip(curves(axes), axes.collections, ["resnet", "vit"], strict=True):
        rows = BOTH[BOTH["model"] == model].sort_values("frequency")
        np.testing.assert_array_equal(line.get_xydata(), rows[["frequency", "change"]])
        low, high = shade.get_datalim(axes.transData).intervaly
        assert (low, high) == (rows["ci_low"].min(), rows["ci_high"].max())


@pytest.mark.parametrize("same_models", [True, False])
def test_points_of_other_models_have_a_panel_of_their_own(same_models):
    figure = drawn(published=published("frequency_noise", "fig2b.csv", SERIES, same_models))
    assert len(figure.axes) == (1 if same_models else 2)
    above, below = figure.axes[0], figure.axes[-1]
    theirs = [line for line in curves(below) if line.get_markerfacecolor() == "white"]
    changes = pd.read_csv(PUBLISHED_POINTS / "fig2b.csv").set_index("model")["change"]
    for line, series in zip(theirs, SERIES.values(), strict=True):
        np.testing.assert_array_equal(line.get_ydata(), changes[series])
    for axes in (above, below):
        low, high = axes.get_ylim()
        for line in curves(axes):
            assert low < line.get_ydata().min()
            assert line.get_ydata().max() < high


def test_the_rings_are_the_masks_of_the_measurement():
    (axes,) = drawn().axes
    rings, noise = arrays(axes)
    for frequency, mask, corner in zip(FREQUENCIES, rings, noise, strict=True):
        np.testing.assert_array_equal(mask, noise_ring(frequency, 0.1, 32))
        # All of the noise is shown here, so that its power lies in the ring and its mirror image.
        power = np.abs(np.fft.fftshift(np.fft.fft2(corner - corner.mean()))) ** 2
        mirrored = np.roll(mask[::-1, ::-1], 1, axis=(0, 1))
        assert power[(mask + mirrored) > 0].sum() == pytest.approx(power.sum(), rel=1e-6)
    assert [box.xy[0] for box in pictures(axes)[::2]] == FREQUENCIES


@pytest.mark.parametrize(
    ("frequencies", "shown"),
    [
        ([0.5], [0.5]),
        ([0, 1], [0, 1]),
        ([i / 20 for i in range(1, 20)], [0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95]),
    ],
)
def test_pictures_and_ticks_are_as_many_as_there_is_room_for(frequencies, shown):
    (axes,) = drawn([RESNET], table=measured("resnet", -9, frequencies, size=224)).axes
    np.testing.assert_allclose(axes.get_xticks(), shown)
    rings, noise = arrays(axes)
    # For large images, only a corner of the noise is shown.
    assert [each.shape for each in rings] == [(224, 224)] * len(shown)
    assert [each.shape for each in noise] == [(32, 32)] * len(shown)


@pytest.mark.parametrize("lowest", [0, -90, 5])
def test_whatever_is_measured_lies_within_the_panel(lowest):
    table = measured("vit", lowest)
    table["ci_low"] = table["ci_high"] = table["change"]
    (axes,) = drawn([VIT], table=table).axes
    low, high = axes.get_ylim()
    assert low < min(0, lowest)
    assert high > max(0, lowest)


GRIDS, SHARES = [2, 4, 14], [0.25, 0.5, 0.75]


def patches(model: str, accuracy: float, chance: float = 0.1) -> pd.DataFrame:
    """Return the table of a model whose accuracy falls with the share, and with the grid."""
    rows = [("none", 1, 0.0, accuracy)]
    rows += [("dropped", 14, share, accuracy * (1 - share)) for share in SHARES]
    rows += [("shuffled", grid, 0.0, accuracy / grid) for grid in GRIDS]
    table = pd.DataFrame(rows, columns=["change", "grid", "share", "accuracy"])
    low, high = table["accuracy"] - 0.05, table["accuracy"] + 0.02
    return table.assign(model=model, ci_low=low, ci_high=high, chance=chance)


OCCLUDED = pd.concat([patches("vit", 0.9), patches("resnet", 0.8)]).sample(frac=1, random_state=0)


@pytest.mark.parametrize(
    ("kind", "across", "falls"),
    [
        ("occlusion", [0, 25, 50, 75], [1, 0.75, 0.5, 0.25]),
        ("shuffling", [1, *GRIDS], [1, 1 / 2, 1 / 4, 1 / 14]),
    ],
)
def test_one_panel_shows_the_accuracy_of_all_models_and_chance(kind, across, falls):
    figure = drawn_from(kind, {"occlusion": OCCLUDED}, [RESNET, VIT])
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
    (axes,) = drawn_from("shuffling", {"occlusion": OCCLUDED}, [VIT]).axes
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert labels == ["1×1", "2×2", "4×4", "14×14"]
    assert axes.get_xlim() == (1, 14)


def test_models_of_other_classes_have_a_line_of_chance_of_their_own():
    table = pd.concat([patches("vit", 0.9), patches("resnet", 0.8, chance=0.01)])
    (axes,) = drawn_from("occlusion", {"occlusion": table}, [RESNET, VIT]).axes
    assert [line.get_ydata()[0] for line in axes.lines[-2:]] == [1, 10]


def test_published_points_are_of_models_or_of_other_networks():
    theirs = published("occlusion", "occlusion.csv", {"vit": "DeiT-S", "DeiT-B": "DeiT-B"})
    figure = drawn_from("occlusion", {"occlusion": OCCLUDED}, [RESNET, VIT], theirs)
    (axes,) = figure.axes
    _, vit, *_, of_vit, other = axes.lines
    np.testing.assert_allclose(of_vit.get_xydata(), [[50, 70]])
    np.testing.assert_allclose(other.get_xydata(), [[0, 81.7], [50, 75.5], [90, 37]])
    assert (of_vit.get_color(), other.get_color()) == (vit.get_color(), GRAY)
    assert {line.get_markerfacecolor() for line in (of_vit, other)} == {"white"}
    named = ["DeiT-S (published)", "DeiT-B (published)"]
    assert [label for label in legend_labels(figure) if "published" in label] == named
