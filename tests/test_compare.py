"""The comparison of tables with the expected ones finds what moved, and nothing else."""

import numpy as np
import pandas as pd
import pytest

from tests.compare import EXPECTED, TABLES, differences, read_text
from vitscope.settings.loading import BUNDLED_STUDIES, load_study


@pytest.fixture(params=TABLES)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


def expected(name: str) -> pd.DataFrame:
    return read_text(name, (EXPECTED / f"{name}.csv").read_text(encoding="utf-8"))


@pytest.fixture
def table(name: str) -> pd.DataFrame:
    return expected(name)


def test_every_table_of_the_study_is_compared_but_two() -> None:
    mini = load_study(BUNDLED_STUDIES / "mini.yaml")
    buildups = (f"buildup_{name}" for name in mini.buildups)
    made = {*mini.tables(), *buildups, "blocks", "claims", "agreement"}
    assert made - TABLES.keys() == {"hessian_density", "reliability"}
    assert TABLES.keys() <= made
    assert {file.stem for file in EXPECTED.glob("*.csv")} == TABLES.keys()


def test_a_table_is_as_itself(name: str, table: pd.DataFrame) -> None:
    assert differences(name, table, table.copy()) == []


def test_a_value_within_the_tolerance_has_not_moved() -> None:
    old = expected("feature_variance")
    new = old.assign(variance=old["variance"] * (1 + TABLES["feature_variance"].relative / 2))
    assert differences("feature_variance", old, new) == []


def test_a_value_that_moved_is_reported_with_key_old_new_and_change() -> None:
    old = expected("feature_variance")
    new = old.copy()
    new.loc[3, "variance"] *= 1.01
    (line,) = differences("feature_variance", old, new)
    assert str((old.loc[3, "model"], 3)) in line
    assert str(old.loc[3, "variance"]) in line
    assert "relative change 1.00e-02" in line


def test_a_claim_that_turned_is_reported() -> None:
    old = expected("claims")
    new = old.copy()
    row = old["holds"].first_valid_index()
    new.loc[row, "holds"] = {"yes": "no", "no": "yes"}.get(old.loc[row, "holds"], "yes")
    assert len(differences("claims", old, new)) == 1


def test_a_value_that_is_gone_is_reported() -> None:
    old = expected("feature_variance")
    new = old.copy()
    new.loc[0, "ci_low"] = np.nan
    assert len(differences("feature_variance", old, new)) == 1


def test_a_value_that_leaves_zero_is_reported() -> None:
    old = expected("claims").assign(measured_value=0.0)
    new = old.copy()
    new.loc[2, "measured_value"] = 0.5
    (line,) = differences("claims", old, new)
    assert line.endswith("measured_value: was 0.0, is 0.5, change 5.00e-01")


def test_whole_numbers_in_a_column_of_floats_have_its_tolerance() -> None:
    header = "model,corruption,severity,images,accuracy,nll,ece\n"
    old, new = (
        read_text("robustness", f"{header}vit,fog,1,200,{value},1,0\n") for value in ("1", "0.99")
    )
    assert differences("robustness", old, new) == []


def test_rows_that_are_gone_or_new_are_reported_by_their_keys() -> None:
    old = expected("trajectory")
    new = old.replace({"model": {"vit": "wit"}})
    (line,) = differences("trajectory", old, new)
    gone = int((old["model"] == "vit").sum())
    assert f"rows differ: {gone} gone, ('vit', 0)" in line
    assert f"{gone} new, ('wit', 0)" in line
    (line,) = differences("trajectory", old, old.iloc[::-1])
    assert line == "trajectory: rows differ: in another order"
    (line,) = differences("trajectory", old, old.assign(more=1))
    assert line == "trajectory: columns differ: 1 new, more"
