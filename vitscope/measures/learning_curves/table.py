"""The table `learning_curves`: one row per model and epoch of its training, the first before it.

It is the record of the training, the table `training_history`, with the snapshots that the study
names. Nothing was measured before the first epoch. Training images are augmented and their labels
smoothed, test images are not: comparing the two losses or accuracies does not show how much a model
overfits.
"""

from vitscope.files.tables import Table
from vitscope.training.history import HISTORY

RECORDED = ("loss", "training_accuracy", "learning_rate", "test_loss", "test_accuracy")

TABLE = Table(
    "learning_curves",
    {
        "model": ("string", "model, as the study names it"),
        "epoch": ("int32", "epochs done"),
        **{name: HISTORY.columns[name] for name in RECORDED},
        "snapshots": ("string", "names of the snapshots taken then, with commas; null if none"),
    },
)
