"""Define the history of a training run, and remove files that are needed only to resume a run."""

import shutil
from pathlib import Path

from vitscope.files.tables import Table
from vitscope.settings.snapshots import HISTORY_FILE, UNFINISHED

# Test images are evaluated in the precision of training. Old histories have neither
# `training_accuracy` nor `test_loss`.
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


# Patterns of training folders below the results: for models, and for the steps of build-ups.
PLACES = ("*/training/*", "*/buildups/*/trained/*")


def remove_unfinished(results: Path) -> None:
    """Remove the files for resuming training where its results are complete, at the end of a run.

    No job removes these files: if a job is killed before Snakemake records its success, the next
    run repeats the training from them.
    """
    for place in PLACES:
        for folder in results.glob(f"{place}/{UNFINISHED}"):
            # Training writes this file last.
            if (folder.parent / HISTORY_FILE).is_file():
                shutil.rmtree(folder)
