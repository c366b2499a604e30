from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from tests.helpers.claims import published
from tests.helpers.drawing import SWIN, VIT, drawn_from
from tests.helpers.shown import legend_labels
from vitscope.errors import VitscopeError
from vitscope.measures.attention.measure import VALUES
from vitscope.package_data import PUBLISHED_POINTS

COLUMNS = {
    "attention_distance": "distance_renormalized",
    "attention_entropy": "entropy",
    "attention_nmi": "nmi",
}
SERIES = {"vit": "MoCo v3 ViT-B/16"}


@pytest.fixture
def table() -> pd.DataFrame:
    """Two models of 12 attentions and 3 heads, in no order; the last is of a class alone."""
    generator = np.random.default_rng(0)
    rows = []
    for model in ("vit", "swin"):
        for number in range(12):
            values = generator.uniform(0.1, 1, (3, len(VALUES))) * [40, 40, 4, 0.5]
            values[:, [0, 1, 3]] *= np.nan if (model, number) == ("vit", 11) else 1
            for head, of_head in [*enumerate(values), (None, values.mean(0))]:
                row: dict[str, Any] = {"model": model, "attention": number, "head": head}
                row |= {"depth": (2 * number + 1) / 24, "distance_uniform": 20.0 + number % 2}
                row["keys"] = 65 if number < 6 else 17
                for name, value in zip(VALUES, of_head, strict=True):
                    row |= {name: value, f"{name}_low": 0.9 * value, f"{name}_high": 1.2 * value}
                rows.append(row)
    made = pd.DataFrame(rows).astype({"head": "Int32"})
    made.loc[made["distance"].isna(), "distance_uniform"] = np.nan
    return made.sample(frac=1, random_state=0)


@pytest.mark.parametrize("kind", COLUMNS)
def test_heads_and_their_mean(kind: str, table: pd.DataFrame) -> None:
    figure: Figure = drawn_from(kind, {"attention": table}, (VIT, SWIN))
    column = COLUMNS[kind]
    for axes, member in zip(figure.axes, (VIT, SWIN), strict=True):
        rows = table[(table["model"] == member.model) & table[column].notna()]
        rows = rows.sort_values(["attention", "head"])
        means, heads = rows[rows["head"].isna()], rows[rows["head"].notna()]
        # An attention that has no value is left out.
        assert len(means) == 12 - (member is VIT and kind != "attention_entropy")
        uniform = [line for line in axes.lines if line.is_dashed()]
        dots, line = (line for line in axes.lines if line not in uniform)
        np.testing.assert_array_equal(dots.get_xydata(), heads[["depth", column]])
        np.testing.assert_array_equal(line.get_xydata(), means[["depth", column]])
        (shade,) = axes.collections
        limits = shade.get_datalim(axes.transData).intervaly
        assert tuple(limits) == (means[f"{column}_low"].min(), means[f"{column}_high"].max())
        if kind == "attention_distance":
            np.testing.assert_array_equal(uniform[0].get_ydata(), means["distance_uniform"])
        elif kind == "attention_entropy":
            # The ceiling that the caption speaks of.
            np.testing.assert_allclose(uniform[0].get_ydata(), np.log(means["keys"]))
        else:
            assert not uniform
        assert axes.get_ylim()[0] == 0
        assert axes.get_ylim()[1] >= means[f"{column}_high"].max()
    named = "mean of heads" + ", renormalized" * (kind == "attention_distance")
    assert {"head", named} <= {*legend_labels(figure)}


def test_what_heads_let_through_is_drawn_with_its_bound(table: pd.DataFrame) -> None:
    shown = table.rename(columns=lambda name: name.replace("nmi", "let_through"))
    tables = {"attention_low_pass": shown.assign(bound=1 + shown["depth"])}
    figure: Figure = drawn_from("attention_low_pass", tables, (VIT, SWIN))
    (bound,) = (line for line in figure.axes[1].lines if line.is_dashed())
    np.testing.assert_allclose(bound.get_ydata(), 1 + bound.get_xdata())
    assert {"head", "mean of heads", "bound, mean of heads"} <= {*legend_labels(figure)}


def test_distances_that_are_not_renormalized(table: pd.DataFrame) -> None:
    figure: Figure = drawn_from(
        "attention_distance", {"attention": table}, (VIT, SWIN), renormalized=False
    )
    rows = table[(table["model"] == "swin") & table["head"].notna()]
    rows = rows.sort_values(["attention", "head"])
    # Queries that attend to all keys alike attend to tokens without a place, too: no line says it.
    dots, _ = figure.axes[1].lines
    np.testing.assert_array_equal(dots.get_xydata(), rows[["depth", "distance"]])
    assert "mean of heads, not renormalized" in legend_labels(figure)


def test_published_distances_are_renormalized(table: pd.DataFrame) -> None:
    theirs = published("attention_distance", "clmim_moco.csv", SERIES)
    tables = {"attention": table}
    with pytest.raises(VitscopeError, match="leave `published` out of the figure"):
        drawn_from("attention_distance", tables, (VIT, SWIN), theirs, renormalized=False)


@pytest.mark.parametrize(
    ("kind", "column", "same_models"),
    [
        ("attention_distance", "attention_distance_px", True),
        ("attention_nmi", "attention_nmi", False),
    ],
)
def test_published_points(kind: str, column: str, same_models: bool, table: pd.DataFrame) -> None:
    theirs = published(kind, "clmim_moco.csv", SERIES, same_models)
    figure: Figure = drawn_from(kind, {"attention": table}, (VIT, SWIN), theirs)
    # Values of another network have a panel of their own; those of the same are in its panel.
    assert len(figure.axes) == (2 if same_models else 3)
    axes = figure.axes[0 if same_models else 2]
    (points,) = (line for line in axes.lines if line.get_linestyle() == ":")
    theirs = pd.read_csv(PUBLISHED_POINTS / "clmim_moco.csv")
    np.testing.assert_array_equal(points.get_ydata(), theirs[column])
    # Where our attentions of the same number are, of which the last has no value here.
    depths = (2 * theirs["block"] + 1) / 24
    known = theirs["block"] < (11 if same_models else 12)
    np.testing.assert_allclose(points.get_xdata(), depths.where(known))
    assert axes.get_ylim()[0] == 0
