import pandas as pd

from tests.compare import EXPECTED, TABLES, differences, read_text
from vitscope.studies.loading import BUNDLED_STUDIES, load_study


def expected(name: str) -> pd.DataFrame:
    return read_text(name, (EXPECTED / f"{name}.csv").read_text(encoding="utf-8"))


def test_every_table_of_the_study_is_compared_but_three() -> None:
    mini = load_study(BUNDLED_STUDIES / "mini.yaml")
    buildups = (f"buildup_{name}" for name in mini.buildups)
    made = {*mini.tables(), *buildups, "blocks", "claims", "agreement"}
    assert made - TABLES.keys() == {"hessian_density", "loss_terms", "reliability"}
    assert TABLES.keys() <= made
    assert {file.stem for file in EXPECTED.glob("*.csv")} == TABLES.keys()


def test_a_value_that_moved_is_reported_with_key_old_new_and_change() -> None:
    old = expected("feature_variance")
    new = old.copy()
    new.loc[3, "variance"] *= 1.01
    (line,) = differences("feature_variance", old, new)
    assert str((old.loc[3, "model"], 3)) in line
    assert str(old.loc[3, "variance"]) in line
    assert "relative change 1.00e-02" in line


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
