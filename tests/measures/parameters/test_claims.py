import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from tests.helpers.claims import blocks, count_alone

SIDE = 4


def table(cosine) -> pd.DataFrame:
    places = [divmod(number, SIDE) for number in range(SIDE**2)]
    rows = [
        {"row": row, "column": column, "cosines": [cosine((row, column), at) for at in places]}
        for row, column in places
    ]
    return pd.DataFrame(rows).assign(model="vit")


def distance(one, other) -> float:
    return float(np.hypot(one[0] - other[0], one[1] - other[1]))


TABLE_ = table(lambda one, other: 1 / (1 + distance(one, other)))
EXAMPLES = {"position_similarity": {"position_similarity": TABLE_, "blocks": blocks("vit")}}


def counted(points: pd.DataFrame) -> dict[str, float]:
    return dict(count_alone("position_similarity", points).droplevel("model")["measured_value"])


def test_what_falls_with_the_distance() -> None:
    assert counted(TABLE_)["near_positions_are_alike"] == pytest.approx(1)
    grows = table(lambda one, other: distance(one, other) / 10)
    assert counted(grows)["near_positions_are_alike"] == pytest.approx(-1)


def test_pairs_are_all_pairs_of_different_positions() -> None:
    noise = np.random.default_rng(0).normal(size=(16, 16))
    noise += noise.T
    found = counted(table(lambda a, b: noise[a[0] * 4 + a[1], b[0] * 4 + b[1]]))
    pairs = [(i, j) for i in range(16) for j in range(i)]
    apart = [distance(divmod(i, 4), divmod(j, 4)) for i, j in pairs]
    expected = -spearmanr(apart, [noise[i, j] for i, j in pairs]).statistic
    assert found["near_positions_are_alike"] == pytest.approx(expected)


def test_lines_are_compared_with_others_as_far_apart() -> None:
    # Of one row or column: 0.7, of others: 0.2, whatever the distance.
    cross = table(lambda a, b: 0.7 if a[0] == b[0] or a[1] == b[1] else 0.2)
    assert counted(cross)["positions_of_a_line_are_alike"] == pytest.approx(0.5)
    # Whole distances: 1, 2 and 3 along a line, and 1.4, 2.2, 2.8, 3.2, 3.6 and 4.2 across.
    steps = table(lambda a, b: round(distance(a, b)) / 10)
    assert counted(steps)["positions_of_a_line_are_alike"] == pytest.approx(0)


def test_where_nothing_differs_nothing_is_counted() -> None:
    assert "near_positions_are_alike" not in counted(table(lambda *_: 0.5))
    row = TABLE_[TABLE_["row"] == 0]
    row = row.assign(cosines=[each[:SIDE] for each in row["cosines"]])
    # In a single row, all pairs are of one line.
    assert "positions_of_a_line_are_alike" not in counted(row)
    unknown = table(lambda *_: np.nan)
    assert counted(unknown) == {}


def components(frequencies: list[float], side: int = 4) -> pd.DataFrame:
    rows = pd.DataFrame({"number": range(len(frequencies)), "frequency": frequencies})
    shown = rows.assign(model="vit", of="component", height=side, width=side)
    # Filters do not count.
    return pd.concat([shown, shown.assign(of="filter", frequency=0.5)], ignore_index=True)


COMPONENTS = components([0.1, 0.3, 0.2, 0.4, 0.5])
EXAMPLES |= {"patch_components": {"patch_filters": COMPONENTS, "blocks": blocks("vit")}}


def counted_components(table: pd.DataFrame) -> list[float]:
    return count_alone("patch_components", table)["measured_value"].tolist()


def test_components_by_hand() -> None:
    # Two neighbours are swapped: 1 - 6 * 2 / (5 * 24).
    assert counted_components(COMPONENTS) == [pytest.approx(0.9)]
    assert counted_components(components([0.5, 0.4, 0.3, 0.2])) == [pytest.approx(-1)]


def test_few_or_small_filters_tell_nothing() -> None:
    assert counted_components(components([0.1, 0.2, 0.3])) == []
    assert counted_components(components([0.1, 0.2, 0.3, 0.4], side=2)) == []
    assert counted_components(components([0.1] * 5)) == []
