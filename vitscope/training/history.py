"""The table of a training: how it went, epoch by epoch."""

import pyarrow as pa

from vitscope.files.tables import Table

HISTORY = Table(
    "training_history",
    {
        "epoch": (pa.int32(), "epochs done"),
        "loss": (pa.float64(), "mean training loss of the epoch, on augmented images"),
        "learning_rate": (pa.float64(), "learning rate of the last step"),
        "test_accuracy": (pa.float64(), "share of test images whose class is found"),
        "radius": (pa.float64(), "distance to the last weights, over that of the first ones"),
        "angle": (pa.float64(), "between the ways from the last weights to these and to the first"),
    },
)
