import pandas as pd
import pytest

from tests.helpers.claims import blocks, count_alone


def components(frequencies: list[float], side: int = 4) -> pd.DataFrame:
    rows = pd.DataFrame({"number": range(len(frequencies)), "frequency": frequencies})
    shown = rows.assign(model="vit", of="component", height=side, width=side)
    # Filters do not count.
    return pd.concat([shown, shown.assign(of="filter", frequency=0.5)], ignore_index=True)


TABLE_ = components([0.1, 0.3, 0.2, 0.4, 0.5])
EXAMPLES = {"patch_components": {"patch_filters": TABLE_, "blocks": blocks("vit")}}


def counted(table: pd.DataFrame) -> list[float]:
    return count_alone("patch_components", table)["measured_value"].tolist()


def test_by_hand() -> None:
    # Two neighbours are swapped: 1 - 6 * 2 / (5 * 24).
    assert counted(TABLE_) == [pytest.approx(0.9)]
    assert counted(components([0.5, 0.4, 0.3, 0.2])) == [pytest.approx(-1)]


def test_few_or_small_filters_tell_nothing() -> None:
    assert counted(components([0.1, 0.2, 0.3])) == []
    assert counted(components([0.1, 0.2, 0.3, 0.4], side=2)) == []
    assert counted(components([0.1] * 5)) == []
