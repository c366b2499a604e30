from pathlib import Path

import numpy as np
import pandas as pd

from vitscope.jobs.tables import find_table
from vitscope.measures.given import Parts
from vitscope.measures.robustness.merge_corruption_error import corruption_error, merge


def robustness_table(accuracy: dict[str, list[float]], clean: float) -> pd.DataFrame:
    rows = [("none", 0, clean)]
    rows += [(name, s, a) for name, values in accuracy.items() for s, a in enumerate(values, 1)]
    table = pd.DataFrame(rows, columns=["corruption", "severity", "accuracy"])
    return table.assign(model="vit", images=100, nll=1.0, ece=0.1)


def test_the_mean_corruption_error_is_a_mean_of_means(tmp_path: Path) -> None:
    table = robustness_table({"snow": [0.9, 0.7], "fog": [0.6, 0.5], "frost": [0.4, 0.1]}, 0.95)
    error = corruption_error(table)
    assert error["corruption"].tolist() == ["snow", "fog", "frost", "mean"]
    np.testing.assert_allclose(error["error"], [0.2, 0.45, 0.75, 1.4 / 3], rtol=1e-12)
    np.testing.assert_allclose(error["clean_error"], 0.05, rtol=1e-12)
    np.testing.assert_allclose(error["relative_error"], error["error"] - 0.05, rtol=1e-12)
    assert set(error["images"]) == {100}
    find_table("corruption_error").write(error, tmp_path / "error.parquet")


def test_parts_of_a_model_are_merged() -> None:
    table = robustness_table({"snow": [0.9, 0.7], "fog": [0.6, 0.5]}, 0.95)
    parts = [table[:3], table[3:]]
    merged = merge(Parts("vit", iter(parts), pd.DataFrame()))
    pd.testing.assert_frame_equal(merged, corruption_error(table), check_exact=True)
