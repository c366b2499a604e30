"""The figure by epoch: its curves are the table's, its shares those that the claims count."""

import numpy as np
import pandas as pd
import pytest

from vitscope.drawing.figure import Member

KINDS = ["stem", "msa", "mlp", "msa", "mlp"]
# The variance after each block, and the component at the highest frequency, by epoch.
BY_EPOCH = {
    0: ([1, 1.1, 1.0, 1.2, 1.1], [-1, -2, -3, -2, -3]),
    10: ([1, 2, 3, 2.5, 4], [-1, -2, -1, -2, -1]),
    86: ([1, 0.5, 3, 2, 5], [-1, -2, -1, 0, -1]),
}
MEMBERS = [
    Member("vit@epoch_0", "ViT, epoch 0", "vit", 0),
    Member("vit@epoch_10", "ViT, epoch 10", "vit", 10),
    Member("vit", "ViT", "vit", 86),
]


def variance() -> pd.DataFrame:
    rows = [
        (member.model, index, kind, index / 4, 8, 8, value)
        for member in MEMBERS
        for index, (kind, value) in enumerate(zip(KINDS, BY_EPOCH[member.epoch][0], strict=True))
    ]
    columns = ["model", "index", "kind", "depth", "height", "width", "variance"]
    # Not in order: the figure brings it.
    return pd.DataFrame(rows, columns=columns).sample(frac=1, random_state=0)


def fourier() -> pd.DataFrame:
    rows = [
        (member.model, index, kind, index / 4, 8, 8, "diagonal", frequency, value * frequency)
        for member in MEMBERS
        for index, (kind, value) in enumerate(zip(KINDS, BY_EPOCH[member.epoch][1], strict=True))
        for frequency in (0.0, 0.5, 1.0)
    ]
    columns = ["model", "index", "kind", "depth", "height", "width"]
    return pd.DataFrame(rows, columns=[*columns, "measure", "frequency", "delta_log_amplitude"])


@pytest.fixture
def figure(drawn_from):
    tables = {"feature_variance": variance(), "fourier": fourier()}
    return drawn_from("variance_by_epoch", tables, MEMBERS)


def test_a_curve_for_each_epoch_is_the_table_in_order(figure):
    axes = figure.axes[0]
    assert axes.get_title() == "ViT"
    for line, (values, _) in zip(axes.lines, BY_EPOCH.values(), strict=True):
        np.testing.assert_array_equal(line.get_xydata(), np.c_[np.arange(5) / 4, values])


@pytest.mark.parametrize(
    ("row", "msa", "mlp"), [(1, [0, 0.5, 1], [0, 1, 1]), (2, [0.5, 1, 0.5], [0, 1, 0.5])]
)
def test_shares_are_counted_by_hand(figure, row, msa, mlp):
    axes = figure.axes[row]
    first, second, half = axes.lines
    for line, shares in ((first, msa), (second, mlp)):
        np.testing.assert_array_equal(line.get_xdata(), [0, 10, 86])
        np.testing.assert_allclose(line.get_ydata(), shares)
    np.testing.assert_array_equal(half.get_ydata(), [0.5, 0.5])
