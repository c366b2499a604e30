"""The moments of a training whose weights are kept, by their names."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

INIT, WARMUP = "init", "warmup"
# The last of them is the checkpoint of its model.
END = "end"
# The folder, beside these, of those after epochs that a recipe lists.
EPOCHS = "epochs"
# Beside them, the table of the training, and a folder of what it needs to go on.
HISTORY_FILE, UNFINISHED = "history.parquet", "unfinished"


def after_epoch(epoch: int) -> str:
    """Return the name of the snapshot after so many epochs, where a recipe lists it."""
    return f"epoch_{epoch}"


def epochs_of(recipe: Mapping[str, Any]) -> dict[str, int]:
    """Return after how many epochs each snapshot is taken, by its name.

    Of the epochs that the recipe lists, those after the end are left out.
    """
    listed = {after_epoch(n): n for n in sorted(recipe["snapshots"]) if n <= recipe["epochs"]}
    return {INIT: 0, WARMUP: recipe["warmup_epochs"], **listed, END: recipe["epochs"]}


def epoch_of(name: str, warmup: int | None) -> int | None:
    """Return after how many epochs a snapshot was taken, as its name tells; None if it does not.

    `warmup` are the epochs of the warm-up, if they are known.
    """
    listed = re.fullmatch(r"epoch_(\d+)", name)
    return int(listed[1]) if listed else {INIT: 0, WARMUP: warmup}.get(name)


def place_of(name: str) -> Path:
    """Return where a snapshot lies in the folder of its training."""
    file = Path(f"{name}.safetensors")
    return file if name in (INIT, WARMUP, END) else EPOCHS / file
