"""Names and paths of the snapshots that a training run keeps."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

INIT, WARMUP = "init", "warmup"
# The last snapshot is the checkpoint of its model.
END = "end"
# The folder, beside the other snapshots, for snapshots after the epochs that a recipe lists.
EPOCHS = "epochs"
# The table of a training run, beside the snapshots.
HISTORY_FILE = "history.parquet"
# The folder, beside the snapshots, from which an unfinished training run resumes.
UNFINISHED = "unfinished"


def after_epoch(epoch: int) -> str:
    """Return the name of the snapshot after an epoch that a recipe lists."""
    return f"epoch_{epoch}"


def epochs_of(recipe: Mapping[str, Any]) -> dict[str, int]:
    """Map the name of each snapshot of a recipe to the number of epochs after which it is taken."""
    listed = {after_epoch(n): n for n in sorted(recipe["snapshots"]) if n <= recipe["epochs"]}
    return {INIT: 0, WARMUP: recipe["warmup_epochs"], **listed, END: recipe["epochs"]}


def epoch_of_snapshot(name: str, warmup: int | None) -> int | None:
    """Return after how many epochs a snapshot was taken, None if unknown.

    `warmup` is the number of epochs of warm-up.
    """
    listed = re.fullmatch(r"epoch_(\d+)", name)
    return int(listed[1]) if listed else {INIT: 0, WARMUP: warmup}.get(name)


def place_of(name: str) -> Path:
    """Return the path of a snapshot, relative to the folder of its training."""
    file = Path(f"{name}.safetensors")
    return file if name in (INIT, WARMUP, END) else EPOCHS / file
