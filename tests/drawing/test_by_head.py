"""Values of heads by depth: a model that has none is named, and ruins no other's panel."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from vitscope.drawing import by_depth, by_head
from vitscope.drawing.figure import Member
from vitscope.drawing.saving import save, style
from vitscope.package_data import STYLE

# So many that an empty panel would push the others out of the figure.
MEMBERS = [Member(name, name, "vit") for name in ("none", "one", "two", "three")]


def heads() -> pd.DataFrame:
    rows = pd.DataFrame({"attention": [0, 0, 1, 1], "head": [0, None] * 2, "depth": [0, 0, 1, 1]})
    values = {"distance": [3.0, 3.0, 4.0, 4.0], "distance_low": 2.0, "distance_high": 5.0}
    tables = [rows.assign(model=each.model, **values) for each in MEMBERS]
    tables[0][[*values]] = np.nan
    return pd.concat(tables)


def points() -> pd.DataFrame:
    rows = pd.DataFrame({"index": range(3), "depth": [0, 0.5, 1], "kind": ["stem", "msa", "mlp"]})
    values = {"similarity": [0.1, 0.2, 0.3], "ci_low": 0.0, "ci_high": 0.5}
    tables = [
        rows.assign(model=each.model, stage=0, height=4, width=4, **values) for each in MEMBERS
    ]
    tables[0][[*values]] = np.nan
    return pd.concat(tables)


@pytest.mark.parametrize("plot", ["by_head", "by_depth"])
def test_a_model_without_values_is_named_in_its_panel(tmp_path: Path, plot: str) -> None:
    with style(STYLE):
        figure: Figure = (
            by_head.plot(heads(), MEMBERS, value="distance", label="Distance")
            if plot == "by_head"
            else by_depth.plot(points(), MEMBERS, value="similarity", label="Similarity")
        )
        save(figure, tmp_path / "a.png", "a", {})
    said = [[text.get_text() for text in axes.texts] for axes in figure.axes]
    assert said == [["no values"], [], [], []]
    # All panels are as large.
    sizes = [axes.get_window_extent().size for axes in figure.axes]
    np.testing.assert_allclose(sizes, [sizes[1]] * 4, rtol=0.05)
    assert min(map(min, sizes)) > 50
