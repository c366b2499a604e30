"""What a training leaves: its history, epoch by epoch, and a folder that is removed at the end."""

import shutil
from pathlib import Path

from vitscope.files.tables import Table
from vitscope.settings.snapshots import HISTORY_FILE, UNFINISHED

# Test images are seen in the precision of training. What was trained before these columns were
# there has no `training_accuracy` and no `test_loss`.
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


# Where trainings are, below the folder of results: of models, and of the steps of build-ups.
PLACES = ("*/training/*", "*/buildups/*/trained/*")


def remove_unfinished(results: Path) -> None:
    """Remove what trainings needed to go on, of those whose results are there.

    It is for the end of a run. A job must not do so itself: a run that is killed before it has
    taken note of the job runs it again, and a cluster may end a job when all is done.
    """
    for place in PLACES:
        for folder in results.glob(f"{place}/{UNFINISHED}"):
            # The last thing that a training writes.
            if (folder.parent / HISTORY_FILE).is_file():
                shutil.rmtree(folder)
