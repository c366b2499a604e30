import re
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tests.drawing.test_every_kind import rows_of
from tests.helpers.drawing import RESNET, VIT, draw_kind, styled
from tests.helpers.shown import boxes_of, flaws
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
    return [[a for a in panels if a.get_subplotspec().rowspan.start == row] for row in sorted(rows)]


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
