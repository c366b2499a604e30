"""Accuracy and calibration of the predictions of a model.

The table `classification`: one row per model.

As the authors define them. A prediction is *confident* if its confidence is above 0.9.

- `accuracy_90`: accuracy among confident predictions; null if none is confident
- `unconfidence_90`: among wrong predictions, the share that is not confident; null if none is
  wrong
- `iou`: TP / (TP + FP + FN) of each class, mean over the classes that occur as labels
- `iou_90`: the same of confident predictions alone, over the classes that occur among their
  labels; null if none is confident
- `frequency_90`: the share of predictions that are confident
- `brier`: squared error of the probabilities against 1 for the label and 0 else, summed over
  classes, mean over images
- `ece`: share of images times the distance of accuracy and mean confidence, summed over the bins
  of `reliability`
- `signed_ece`: the same with mean confidence minus accuracy: positive where a model is
  overconfident
- `ece_calibrated`: the mean ECE of a calibrated network of as many images and the same confidences,
  whose predictions are right as often as they say. Chance alone makes so much of the ECE, and more
  in resamples: where the ECE is near it, its interval lies too high. `nll`, `brier` and
  `signed_ece` have no such bias.

Two details of the authors' code are left out: small numbers (1e-7) in denominators, which give 0
where the table has null, and bins that sum the confidence over [low, high) but count images over
(low, high]. If no confidence is on the edge of a bin, both together change no score by more than
1e-6.
"""

from dataclasses import dataclass

from vitscope.files.tables import Table
from vitscope.measures.columns import SCORES, interval_columns
from vitscope.measures.measure import Case, Given, Measure, bootstrap, together
from vitscope.settings.section import setting

TABLE = Table(
    "classification",
    {
        "model": ("string", "model, as the study names it"),
        "images": ("int64", "number of images"),
        **SCORES,
        **interval_columns("of ece over images", "ece"),
        "ece_calibrated": ("float64", "mean ece of a calibrated network of as many images"),
    },
)


@dataclass(frozen=True)
class Settings:
    """Accuracy and calibration."""

    images: int | None = setting(
        None, "How many images of the split are classified; null for all.", minimum=1
    )


def count_classes(case: Case) -> Given:
    """Depend on the number of classes."""
    return {"classes": case.study.dataset_of(case.model).classes}


CLASSIFICATION = Measure(
    needs="predictions",
    settings=Settings,
    table=TABLE,
    arguments=together(count_classes, bootstrap),
)
