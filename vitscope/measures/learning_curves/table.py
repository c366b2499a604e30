"""The table `learning_curves`: one row per model and epoch of its training, the first before it.

It is what training recorded, the table `training_history`, with the snapshots that the study names
where they were taken. Before the first epoch nothing was measured. Training images are augmented
and their labels smoothed, test images are as they are: the two losses and the two accuracies do not
tell how much a model overfits.
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
