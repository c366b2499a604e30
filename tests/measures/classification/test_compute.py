from pathlib import Path
from typing import cast

import pandas as pd

from tests.helpers.predictions import predictions
from vitscope.data.split import Split
from vitscope.measures.classification.compute import measure
from vitscope.measures.classification.table import TABLE
from vitscope.measures.given import OnPredictions
from vitscope.measures.scores import scores_of


def test_a_model_has_one_row_of_its_scores(tmp_path: Path) -> None:
    found = predictions(label=[0, 1, 2], prediction=[0, 1, 1], confidence=[0.95, 0.6, 0.92])
    images = cast(Split, None)
    table = measure(OnPredictions("vit", found, images), classes=4)
    expected = pd.DataFrame([{"model": "vit", "images": 3} | scores_of(found, 4)])
    pd.testing.assert_frame_equal(table, expected, check_exact=True)
    TABLE.write(table, tmp_path / "table.parquet")
