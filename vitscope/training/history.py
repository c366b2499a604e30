"""The table of a training: how it went, epoch by epoch.

Test images are seen in the precision of training. What was trained before these columns were there
has no `training_accuracy` and no `test_loss`.
"""

from vitscope.files.tables import Table

HISTORY = Table(
    "training_history",
    {
        "epoch": ("int32", "epochs done"),
        "loss": ("float64", "mean training loss of the epoch, on augmented images"),
        "training_accuracy": (
            "float64",
            "share of these images whose class is found, of mixed ones that of the larger part",
        ),
        "learning_rate": ("float64", "learning rate of the last step"),
        "test_loss": ("float64", "mean cross-entropy of the test images after the epoch"),
        "test_accuracy": ("float64", "share of test images whose class is found after the epoch"),
        "radius": ("float64", "distance to the last weights, over that of the first ones"),
        "angle": ("float64", "between the ways from the last weights to these and to the first"),
    },
)
