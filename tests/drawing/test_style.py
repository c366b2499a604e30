import re
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager
from matplotlib.image import imread

from tests.drawing.test_every_kind import rows_of
from tests.helpers.drawing import RESNET, VIT, draw_kind, styled
from tests.helpers.shown import boxes_of, flaws
from vitscope.drawing import saving
from vitscope.drawing.figure import Member
from vitscope.drawing.looks import look_of
from vitscope.drawing.panels import columns_of, make_panels
from vitscope.drawing.saving import save, style
from vitscope.errors import VitscopeError
from vitscope.measures.registry import kinds
from vitscope.package_data import STYLE

SIZES = [
    *("axes.labelsize", "axes.titlesize", "figure.labelsize", "font.size"),
    *("legend.fontsize", "xtick.labelsize", "ytick.labelsize"),
]


def sizes(font_size: float) -> np.ndarray:
    with style(STYLE, {"font_size": font_size}):
        return np.array([matplotlib.rcParams[name] for name in SIZES])


def test_all_sizes_of_text_grow_together() -> None:
    usual = np.array([7.5, 8, 7.5, 7, 6.5, 6.5, 6.5])
    np.testing.assert_array_equal(sizes(7), usual)
    np.testing.assert_allclose(sizes(9.1), 1.3 * usual, rtol=1e-12)
    # Titles of 8 points in 7 become 6.9 in 6, and would be 5.7 in 5; none is below 6.
    for size in (6, 5):
        np.testing.assert_allclose(sizes(size), np.maximum(6, size / 7 * usual), rtol=1e-12)


def test_every_setting_ends_with_the_block() -> None:
    own = {"width": 3.25, "font_size": 9, "font": "DejaVu Serif", "palette": {"vit": "#123456"}}
    with style(STYLE, own):
        assert matplotlib.rcParams["font.sans-serif"] == ["DejaVu Serif", "DejaVu Sans"]
        assert look_of(VIT).color == "#123456"
    with style(STYLE):
        assert matplotlib.rcParams["font.sans-serif"] == ["DejaVu Sans"]
        assert look_of(VIT).color == "#d62728"
        assert make_panels(2).figure.get_figwidth() == 5.5


def test_the_font_is_that_of_all_text_also_of_powers(tmp_path: Path) -> None:
    with style(STYLE, {"font": "DejaVu Serif"}):
        panels = make_panels(1)
        panels.axes[0].set(xscale="log", xlim=(1, 1000), xlabel="Some text")
        save(panels.figure, tmp_path / "a.pdf", "a", {})
    fonts = set(re.findall(rb"/BaseFont /(?:\w+\+)?(\S+)", (tmp_path / "a.pdf").read_bytes()))
    assert fonts == {b"DejaVuSerif"}


def test_a_font_that_there_is_not_is_refused() -> None:
    wanted = (
        r"style.font: found 'Dejavu', allowed: a family of fonts that matplotlib finds on this "
        r"machine. Did you mean 'DejaVu"
    )
    with pytest.raises(VitscopeError, match=wanted), style(STYLE, {"font": "Dejavu"}):
        pass


def test_a_font_that_was_installed_since_the_index_was_made_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    indexed = [font for font in fontManager.ttflist if font.name != "DejaVu Serif"]
    (regular,) = [
        font.fname
        for font in fontManager.ttflist
        if Path(font.fname).name == "DejaVuSerif.ttf" and "mpl-data" in font.fname
    ]
    monkeypatch.setattr(fontManager, "ttflist", indexed)
    monkeypatch.setattr(saving, "findSystemFonts", lambda: [regular])
    with style(STYLE, {"font": "DejaVu Serif"}):
        assert matplotlib.rcParams["font.sans-serif"][0] == "DejaVu Serif"


def figure_of_all() -> Figure:
    """Draw text, lines with marks, a bar, a neutral shade, and a map with a line."""
    figure = Figure(layout="constrained")
    plain, over = figure.subplots(1, 2)
    plain.plot([0, 1], [0, 1], color="#d62728", marker="o", markersize=4, linewidth=1)
    plain.plot([0, 1], [1, 0], color="black", markerfacecolor="white", marker="s")
    plain.bar([0], [1], facecolor="white", edgecolor="#595959", linewidth=0.4)
    plain.fill_between([0, 1], 0, 1, color="#7f7f7f", alpha=0.2, lw=0)
    plain.set_title("title")
    over.imshow(np.eye(2))
    over.axhline(0.5, color="white")
    return figure


def test_a_dark_background_turns_neutral_colours_and_no_others(tmp_path: Path) -> None:
    with style(STYLE, {"background": "dark"}):
        figure = figure_of_all()
        save(figure, tmp_path / "a.png", "a", {})
        # Saving once more changes nothing.
        save(figure, tmp_path / "b.png", "a", {})
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    plain, over = figure.axes
    of_model, black = plain.lines
    ink, ground = 0.94, 0.08
    assert to_rgb(figure.get_facecolor()) == pytest.approx((ground,) * 3)
    assert to_rgb(plain.get_facecolor()) == pytest.approx((ground,) * 3)
    assert to_rgb(of_model.get_color()) == to_rgb("#d62728")
    assert to_rgb(black.get_color()) == pytest.approx((ink,) * 3)
    assert to_rgb(black.get_markerfacecolor()) == pytest.approx((ground,) * 3)
    assert to_rgb(plain.title.get_color()) == pytest.approx((ink,) * 3)
    assert to_rgb(plain.patches[0].get_facecolor()) == pytest.approx((ground,) * 3)
    # 0x59 of 0xff lies as far from black as its counterpart from the ink.
    gray = ink + (ground - ink) * 0x59 / 0xFF
    assert to_rgb(plain.patches[0].get_edgecolor()) == pytest.approx((gray,) * 3)
    assert plain.collections[0].get_facecolor()[0, 3] == pytest.approx(0.2)
    assert to_rgb(over.lines[0].get_color()) == (1, 1, 1)
    labels = [*plain.get_xticklabels(), *plain.get_yticklabels()]
    assert {to_rgb(label.get_color()) for label in labels} == {(ink,) * 3}
    # What is dark around the panels is dark in the file.
    corner = imread(tmp_path / "a.png")[0, 0, :3]
    np.testing.assert_allclose(corner, ground, atol=1 / 255)


def test_lines_and_marks_grow_with_large_text_and_never_shrink(tmp_path: Path) -> None:
    found = {}
    for size in (5, 7, 10.5):
        with style(STYLE, {"font_size": size}):
            figure = figure_of_all()
            save(figure, tmp_path / "a.png", "a", {})
        line, bar = figure.axes[0].lines[0], figure.axes[0].patches[0]
        found[size] = [line.get_linewidth(), line.get_markersize(), bar.get_linewidth()]
    assert found[5] == found[7] == [1, 4, 0.4]
    assert found[10.5] == pytest.approx([1.5, 6, 0.6])


def test_a_palette_changes_a_colour_and_no_marker() -> None:
    cnn = Member("cnn", "CNN", "preresnet")
    before = [look_of(each) for each in (RESNET, cnn, VIT)]
    with style(STYLE, {"palette": {"resnet": "#010203"}}):
        after = [look_of(each) for each in (RESNET, cnn, VIT)]
    # An AlterNet without attention is a ResNet.
    assert [look.color for look in after] == ["#010203", "#010203", before[2].color]
    assert [look.marker for look in after] == [look.marker for look in before]


@pytest.mark.parametrize(
    ("width", "columns"),
    [(3.25, [1, 2, 2, 2, 2, 2, 2]), (5.5, [1, 2, 3, 2, 3, 3, 3]), (6.875, [1, 2, 3, 4, 3, 3, 4])],
)
def test_panels_flow_to_the_page_in_even_rows(width: float, columns: list[int]) -> None:
    with style(STYLE, {"width": width}):
        assert [columns_of(count) for count in range(1, 8)] == columns
        for count in range(1, 8):
            panels = make_panels(count)
            wanted = min(3.25, width) if count == 1 else width
            assert panels.figure.get_figwidth() == wanted
            assert len(panels.figure.axes) == count


MULTIPLES = [name for name, kind in kinds().items() if "scales" in kind.option_keys]
# What is across, and counts: everything else that has fractions is a value.
ACROSS = {"depth", "epoch", "frequency", "threshold", "learning_rate", "height", "width"}


def drawn(kind: str, **options: str) -> Figure:
    """A figure of two models, the values of the second 0.7 times those of the first."""
    tables = {}
    for name in kinds()[kind].tables:
        first, second = rows_of(name, "resnet"), rows_of(name, "vit")
        values = [*second.select_dtypes("float").columns.difference([*ACROSS])]
        lists = {key: 0.7 * second[key] for key in {"log_ratios"} & {*second}}
        tables[name] = pd.concat([first, second.assign(**0.7 * second[values], **lists)])
    return styled(draw_kind, kind, tables, [RESNET, VIT], {}, own={"width": 3.25}, **options)


def pairs(figure: Figure) -> list[list[Axes]]:
    """The panels of each row, which are of one quantity."""
    panels = [axes for axes in figure.axes if axes.get_label() != "<colorbar>"]
    rows = {axes.get_subplotspec().rowspan.start for axes in panels}
    every = [
        [a for a in panels if a.get_subplotspec().rowspan.start == row] for row in sorted(rows)
    ]
    # A panel of another quantity, of both models, stands alone.
    return [row for row in every if len(row) > 1]


def notes(figure: Figure) -> int:
    return [text for text, _ in boxes_of(figure)].count("own scale")


@pytest.mark.parametrize("kind", MULTIPLES)
def test_panels_of_one_quantity_share_their_scale_or_say_that_they_do_not(kind: str) -> None:
    shared, own = drawn(kind, scales="shared"), drawn(kind, scales="own")
    assert notes(shared) == 0
    for (left, right), apart in zip(pairs(shared), pairs(own), strict=True):
        assert left.get_ylim() == right.get_ylim()
        low, high = left.get_ylim()
        # The scale that is shared reaches over that of each panel, and no further.
        ends = [axes.get_ylim() for axes in apart]
        assert (low, high) == (min(a for a, _ in ends), max(b for _, b in ends))
    assert notes(own) > 0
    assert notes(own) == sum(
        2 * (left.get_ylim() != right.get_ylim()) for left, right in pairs(own)
    )
    assert flaws(shared) == flaws(own) == []


@pytest.mark.parametrize(
    ("kind", "rows"),
    [
        ("feature_variance", [2]),
        ("variance_and_share", [2, 0]),
        ("mean_token", [0]),
        ("attention_entropy", [0]),
        ("lesion", [0]),
        ("curvature", [2, 2]),
    ],
)
def test_what_is_shared_unless_the_study_says_so(kind: str, rows: list[int]) -> None:
    figure = drawn(kind)
    assert notes(figure) == sum(rows)
    differ = [left.get_ylim() != right.get_ylim() for left, right in pairs(figure)]
    assert differ == [count > 0 for count in rows]
