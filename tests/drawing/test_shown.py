"""What tests look for in a figure is found where it is wrong."""

from matplotlib.figure import Figure

from tests.helpers.shown import boxes_of, flaws


def test_what_is_cut_off_and_what_overlaps_is_found() -> None:
    figure = Figure(figsize=(4, 3))
    axes = figure.add_axes((0.2, 0.2, 0.6, 0.6))
    axes.set(xticks=[0.5], yticks=[0.5, 7], ylim=(0, 1), title="title")
    axes.text(0.5, 0.5, "one")
    axes.text(0.51, 0.5, "other")
    axes.text(1.3, 0.5, "far")
    figure.draw_without_rendering()
    shown = [text for text, _ in boxes_of(figure)]
    # A tick beyond the limits has no label.
    assert sorted(shown) == ["0.5", "0.5", "far", "one", "other", "title"]
    assert flaws(figure) == ["cut off: far", "one over other"]
    panel = axes.get_window_extent()
    assert "one over panel" in flaws(figure, [("panel", panel)])
