from pathlib import Path
from typing import cast

import pandas as pd

from tests.helpers.predictions import predictions
from vitscope.data.split import Split
from vitscope.measures.classification.compute_reliability import measure
from vitscope.measures.classification.table_reliability import TABLE
from vitscope.measures.given import OnPredictions
from vitscope.measures.scores import reliability


def test_a_model_has_a_row_for_each_bin(tmp_path: Path) -> None:
    found = predictions(label=[0, 1, 2], prediction=[0, 1, 1], confidence=[0.95, 0.6, 0.92])
    images = cast(Split, None)
    table = measure(OnPredictions("vit", found, images))
    assert table["images"].tolist() == [0] * 5 + [1] + [0] * 3 + [2]
    assert set(table["model"]) == {"vit"}
    bins = table.drop(columns="model")
    pd.testing.assert_frame_equal(bins, reliability(found), check_exact=True)
    TABLE.write(table, tmp_path / "table.parquet")
