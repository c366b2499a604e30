import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import LogNorm
from matplotlib.contour import QuadContourSet

from tests.helpers.drawing import RESNET, SWIN, VIT, drawn_from, laid_out
from tests.helpers.shown import flaws, legend_labels
from vitscope.errors import VitscopeError

MEMBERS = (RESNET, VIT, SWIN)
# Where the networks lie, and their losses.
CORNERS = np.array([[0.0, 0], [8, 0], [4, 6]])
LOSSES = [0.5, 0.75, 0.6]


def plane(models: tuple[str, ...] = ("resnet", "vit", "swin"), wall: float = 4) -> pd.DataFrame:
    """A bowl around each of three networks, with walls; the error is ten times the loss."""
    x, y = np.meshgrid(np.linspace(-2, 10, 13), np.linspace(-2, 8, 11))
    grid = np.stack([x.ravel(), y.ravel()], axis=1)
    away = np.linalg.norm(grid[:, None] - CORNERS, axis=2)
    nll = [*LOSSES, *np.minimum(0.5 + away.min(axis=1) ** 2, wall)]
    at = pd.DataFrame(np.concatenate([CORNERS, grid]), columns=["x", "y"])
    shares = np.linalg.solve(CORNERS[1:].T, at[["x", "y"]].T).T
    at[["other_share", "third_share"]] = shares.round(12)
    names = dict(zip(("model", "other_model", "third_model"), models, strict=True))
    at = at.assign(network=[1, 2, 3] + [0] * len(grid), reset=False, images=50, **names)
    # In no particular order.
    return at.assign(nll=nll, error=10 * np.array(nll)).sample(frac=1, random_state=0)


def test_networks_lie_at_their_places_in_the_colours_of_their_own_values() -> None:
    loss, error, *bars = drawn_from("plane", {"plane": plane()}, MEMBERS).axes
    assert [bar.get_ylabel() for bar in bars] == ["Loss (NLL)", "Error (%)"]
    for axes, factor in ((loss, 1), (error, 10)):
        marks = axes.collections[-1]
        np.testing.assert_array_equal(
            np.asarray(sorted(marks.get_offsets().tolist())), CORNERS[[0, 2, 1]]
        )
        assert sorted(marks.get_array()) == pytest.approx(sorted(factor * np.array(LOSSES)))
        named = {text.get_text(): text.xy for text in axes.texts if text.get_text() != "50 images"}
        assert named == {
            member.label: tuple(place) for member, place in zip(MEMBERS, CORNERS, strict=True)
        }
        bands = next(each for each in axes.collections if isinstance(each, QuadContourSet))
        assert (marks.norm, marks.cmap) == (bands.norm, bands.cmap)
        assert axes.get_aspect() == 1
    # By equal factors: as many colours from 0.5 to 1 as from 2 to 4.
    (bands, *_) = loss.collections
    assert isinstance(bands.norm, LogNorm)
    assert len({*np.round(np.diff(np.log(bands.levels)), 9)}) == 1
    assert (bands.levels[0], bands.levels[-1]) == (0.5, 4)


def test_what_is_far_above_the_triangle_is_hatched() -> None:
    whole = laid_out("plane", {"plane": plane()}, MEMBERS)
    assert legend_labels(whole) == []
    high = plane()
    far = (high["x"] == 10) & (high["y"] == 8)
    for value, most in ((100, 8), (np.nan, 4)):
        table = high.assign(nll=high["nll"].mask(far, value))
        figure = laid_out("plane", {"plane": table}, MEMBERS)
        assert legend_labels(figure) == [f"loss above {most}, or not finite"]
        assert figure.axes[0].collections[0].levels[-1] == most
        assert flaws(figure) == []


def test_each_triple_has_a_row_and_all_share_their_colours() -> None:
    table = pd.concat([plane(("vit", "swin", "resnet"), wall=2), plane()])
    figure = laid_out("plane", {"plane": table}, MEMBERS)
    panels = figure.axes[:4]
    assert flaws(figure) == []
    levels = [axes.collections[0].levels.tolist() for axes in panels]
    assert (levels[0], levels[1]) == (levels[2], levels[3])
    assert panels[0].texts[0].get_text() == VIT.label


def test_extremes_are_drawn() -> None:
    """A loss of zero, the same loss everywhere, and a range of many powers of ten."""
    for nll in (plane()["nll"] - 0.5, 1.0, 10.0 ** plane()["nll"]):
        drawn_from("plane", {"plane": plane().assign(nll=nll)}, MEMBERS)


def test_what_cannot_be_drawn_is_refused() -> None:
    others = plane(("resnet", "vit", "pit"))
    with pytest.raises(VitscopeError, match="plane table has no model 'swin': delete the table"):
        drawn_from("plane", {"plane": others}, MEMBERS)
    with pytest.raises(VitscopeError, match="finite nowhere between the networks"):
        drawn_from("plane", {"plane": plane().assign(nll=np.nan)}, MEMBERS)
