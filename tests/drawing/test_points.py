"""The points of a figure, as they are taken away: those that its lines go through."""

import numpy as np
import pytest

from tests.drawing.test_every_kind import MEMBERS, PUBLISHED, axes_of, draw, rows_of
from vitscope.claims.points import read_published
from vitscope.drawing.points import points_of
from vitscope.measures.registry import kinds
from vitscope.package_data import PUBLISHED_POINTS

# Of these, columns of the tables are drawn as they are.
PLAIN = {
    "feature_variance": ("depth", "variance"),
    "fourier_depth": ("depth", "delta_log_amplitude"),
    "fourier_curves": ("frequency", "delta_log_amplitude"),
    "frequency_noise": ("frequency", "change"),
    "spectrum": ("depth", "share"),
    "token_similarity": ("depth", "similarity"),
    "attention_entropy": ("depth", "entropy"),
}


@pytest.mark.parametrize("kind", PLAIN)
def test_every_point_of_a_line_is_there(kind):
    compared = (1,) if kind in PUBLISHED and not kinds()[kind].for_claims else ()
    figure = draw(kind, 2, compared)
    tables = {name: rows_of(name, MEMBERS[0].model) for name in kinds()[kind].tables}
    published = {}
    if compared:
        file, series = PUBLISHED[kind]
        names = {MEMBERS[1].model: series}
        published = read_published(PUBLISHED_POINTS / file, kinds()[kind].published, names)
    points = points_of(tables, MEMBERS[:2], published)
    there = {*map(tuple, points[[*PLAIN[kind]]].round(9).to_numpy())}
    # What points are compared with, as the largest entropy there can be, is dashed.
    lines = [
        line for axes in axes_of(figure) for line in axes.lines if line.get_linestyle() != "--"
    ]
    drawn = [line.get_xydata() for line in lines if line.get_transform() == line.axes.transData]
    drawn = np.concatenate(drawn).round(9)
    drawn = drawn[np.isfinite(drawn).all(axis=1)]
    assert len(drawn) > 4
    assert {*map(tuple, drawn)} <= there
    assert points["published"].notna().sum() == sum(len(each.points) for each in published.values())
    assert points.loc[points["published"].isna(), "label"].eq(MEMBERS[0].label).all()
