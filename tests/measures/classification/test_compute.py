from typing import cast

import pandas as pd

from tests.helpers.predictions import predictions
from vitscope.data.split import Split
from vitscope.measures.classification import compute
from vitscope.measures.given import OnPredictions
from vitscope.measures.scores import calibration_scores, scores_by_confidence, scores_of

FOUND = predictions(label=[0, 1, 2], prediction=[0, 1, 1], confidence=[0.95, 0.6, 0.92])
GIVEN = OnPredictions("vit", FOUND, cast(Split, None))


def test_a_model_has_one_row_of_its_scores() -> None:
    table = compute.measure_classification(GIVEN, classes=4, resamples=50, seed=3)
    expected = pd.DataFrame(
        [{"model": "vit", "images": 3} | scores_of(FOUND, 4) | calibration_scores(FOUND, 50, 3)]
    )
    pd.testing.assert_frame_equal(table, expected, check_exact=True)


def test_a_model_has_a_row_for_each_bin() -> None:
    table = compute.measure_reliability(GIVEN)
    bins = scores_by_confidence(FOUND).assign(model="vit")
    pd.testing.assert_frame_equal(table[[*bins]], bins, check_exact=True)
