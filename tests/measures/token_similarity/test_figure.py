"""The figure shows the table, on a scale of its own."""

import numpy as np
import pytest

from tests.helpers.shown import spans
from vitscope.drawing.figure import Member

VIT = Member("vit", "ViT", "vit")
RESNET = Member("resnet", "ResNet", "resnet")


@pytest.fixture
def figure(table, drawn_from):
    renamed = table.rename(columns={"variance": "similarity"})
    return drawn_from("token_similarity", {"token_similarity": renamed}, (VIT, RESNET))


def test_panels_show_the_table_in_order(figure, table):
    for axes, member in zip(figure.axes, (VIT, RESNET), strict=True):
        rows = table[table["model"] == member.model].sort_values("index")
        (line,) = axes.lines
        np.testing.assert_array_equal(line.get_xdata(), rows["depth"])
        np.testing.assert_array_equal(line.get_ydata(), rows["variance"])
        assert axes.get_title() == member.label
        assert axes.get_xlim() == (0, 1)
    assert figure.axes[0].get_ylabel() == "Cosine similarity of tokens"
    assert len(spans(figure.axes[0])) == 12
