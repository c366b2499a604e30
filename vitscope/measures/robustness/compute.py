from collections.abc import Sequence

import pandas as pd

from vitscope.corruptions import CLEAN
from vitscope.corruptions.corrupted_images import corrupted_batches
from vitscope.data.split import known_labels
from vitscope.measures.given import OnModel
from vitscope.measures.scores import scores_of
from vitscope.networks.running.prediction_doubts import warn_about_predictions
from vitscope.networks.running.predictions import predict


def measure_robustness(given: OnModel, corruptions: Sequence[str], clean: bool) -> pd.DataFrame:
    """Return a model's scores on corrupted images and, if `clean`, first on clean images."""
    rows = given.corrupted[0].rows.tolist()
    labels = known_labels(given.images, rows)
    loading = (given.batch_size, given.settings["mean"], given.settings["std"])
    views = [(CLEAN, 0, given.batches(rows))] if clean else []
    views += [
        (each.corruption, severity, corrupted_batches(each, severity, *loading))
        for each in given.corrupted
        for severity in each.severities
    ]
    rows_of_table = []
    for corruption, severity, batches in views:
        predictions = predict(given.network, batches, labels, given.device)
        if corruption == CLEAN:
            given.warnings.extend(warn_about_predictions(given.model, given.images, predictions))
        scores = scores_of(predictions, given.settings["classes"])
        facts = {"corruption": corruption, "severity": severity, "images": len(labels)}
        right = (predictions["label"] == predictions["prediction"]).to_numpy()
        rows_of_table.append({"model": given.model, **facts, **scores, "right": right})
    return pd.DataFrame(rows_of_table)
