"""The table `landscape`: one row per model and point of the grid, x fastest.

The trained weights are at 0, 0. Scores after `l2_squared` take the likeliest class of a target as
the label of its image, as the authors do. Where the logits of an image are not finite, the point
has no losses and no scores: they are null.
"""

import pyarrow as pa

from vitscope.files.tables import Table

TABLE = Table(
    "landscape",
    {
        "model": (pa.string(), "model, as the study names it"),
        "x": (pa.float64(), "steps along the first direction"),
        "y": (pa.float64(), "steps along the second direction"),
        "images": (pa.int64(), "number of augmented images"),
        "clean": (pa.bool_(), "whether the images are as they are, and not augmented"),
        "precision": (pa.string(), "of the forward passes: float32 or bfloat16"),
        "weight_decay": (pa.float64(), "weight of the L2 term; 0 where the loss is without it"),
        "loss": (pa.float64(), "nll + weight_decay x l2, as the paper draws it; null as nll"),
        "loss_squared": (pa.float64(), "nll + weight_decay / 2 x l2_squared, whose slope decays"),
        "nll": (pa.float64(), "negative log-likelihood of the targets; null where logits overflow"),
        "l2": (pa.float64(), "sum of the 2-norms of all parameter tensors"),
        "l2_squared": (pa.float64(), "sum of their squares"),
        "accuracy": (pa.float64(), "share of the images whose likeliest target is found"),
        "accuracy_90": (pa.float64(), "the same among confident predictions; null if none is"),
        "unconfidence_90": (pa.float64(), "share of unconfident among wrong predictions"),
        "iou": (pa.float64(), "intersection over union, mean over classes"),
        "iou_90": (pa.float64(), "the same among confident predictions"),
        "frequency_90": (pa.float64(), "share of predictions that are confident"),
        "top5": (pa.float64(), "share of images whose target is among the five most probable"),
        "brier": (pa.float64(), "Brier score, summed over classes, mean over images"),
        "ece": (pa.float64(), "expected calibration error, in ten bins of equal width"),
        "signed_ece": (pa.float64(), "the same with its sign: positive where overconfident"),
    },
)
