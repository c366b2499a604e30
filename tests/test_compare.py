"""The comparison of tables with the expected ones finds what moved, and nothing else."""

import numpy as np
import pandas as pd
import pytest

from tests.compare import EXPECTED, TABLES, differences, read_text


@pytest.fixture(params=TABLES)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def table(name: str) -> pd.DataFrame:
    return read_text((EXPECTED / f"{name}.csv").read_text(encoding="utf-8"))


def test_a_table_is_as_itself(name: str, table: pd.DataFrame) -> None:
    assert differences(name, table, table.copy()) == []


def test_a_value_within_the_tolerance_has_not_moved() -> None:
    old = read_text((EXPECTED / "feature_variance.csv").read_text(encoding="utf-8"))
    new = old.assign(variance=old["variance"] * (1 + TABLES["feature_variance"].relative / 2))
    assert differences("feature_variance", old, new) == []


def test_a_value_that_moved_is_told_with_key_old_new_and_change() -> None:
    old = read_text((EXPECTED / "feature_variance.csv").read_text(encoding="utf-8"))
    new = old.copy()
    new.loc[3, "variance"] *= 1.01
    (line,) = differences("feature_variance", old, new)
    assert str((old.loc[3, "model"], 3)) in line
    assert str(old.loc[3, "variance"]) in line
    assert "relative change 1.00e-02" in line


def test_a_claim_that_turned_is_told() -> None:
    old = read_text((EXPECTED / "claims.csv").read_text(encoding="utf-8"))
    new = old.copy()
    row = old["holds"].first_valid_index()
    new.loc[row, "holds"] = not old.loc[row, "holds"]
    assert len(differences("claims", old, new)) == 1


def test_a_value_that_is_gone_is_told() -> None:
    old = read_text((EXPECTED / "feature_variance.csv").read_text(encoding="utf-8"))
    new = old.copy()
    new.loc[0, "ci_low"] = np.nan
    assert len(differences("feature_variance", old, new)) == 1


def test_other_rows_are_told(name: str, table: pd.DataFrame) -> None:
    assert len(differences(name, table, table.iloc[1:])) == 1
