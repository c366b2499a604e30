"""Scores and bins as tables: those of `scores`, which have tests of their own."""

from pathlib import Path
from typing import cast

import pandas as pd

from tests.helpers.predictions import predictions
from vitscope.data.split import Split
from vitscope.measures.classification import compute, measure
from vitscope.measures.classification import compute as compute_reliability
from vitscope.measures.classification import measure as measure_reliability
from vitscope.measures.given import OnPredictions
from vitscope.measures.scores import calibration, reliability, scores_of

FOUND = predictions(label=[0, 1, 2], prediction=[0, 1, 1], confidence=[0.95, 0.6, 0.92])
GIVEN = OnPredictions("vit", FOUND, cast(Split, None))


def test_a_model_has_one_row_of_its_scores(tmp_path: Path) -> None:
    table = compute.measure(GIVEN, classes=4, resamples=50, seed=3)
    expected = pd.DataFrame(
        [{"model": "vit", "images": 3} | scores_of(FOUND, 4) | calibration(FOUND, 50, 3)]
    )
    pd.testing.assert_frame_equal(table, expected, check_exact=True)
    measure.TABLE.write(table, tmp_path / "table.parquet")


def test_a_model_has_a_row_for_each_bin(tmp_path: Path) -> None:
    table = compute_reliability.measure(GIVEN)
    bins = reliability(FOUND).assign(model="vit")
    pd.testing.assert_frame_equal(table[[*bins]], bins, check_exact=True)
    measure_reliability.RELIABILITY_TABLE.write(table, tmp_path / "table.parquet")
