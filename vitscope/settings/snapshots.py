"""Names of the moments of a training whose weights are kept, and where these lie."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

INIT, WARMUP = "init", "warmup"
# The last snapshot is the checkpoint of its model.
END = "end"
# The folder of snapshots after the epochs that a recipe lists; it is beside the other snapshots.
EPOCHS = "epochs"
# Beside them, too: a training's table, and the folder with what it needs to resume.
HISTORY_FILE, UNFINISHED = "history.parquet", "unfinished"


def after_epoch(epoch: int) -> str:
    """Return the name of the snapshot after an epoch that a recipe lists."""
    return f"epoch_{epoch}"


def epochs_of(recipe: Mapping[str, Any]) -> dict[str, int]:
    """Return after how many epochs each snapshot is taken, up to the recipe's end, by its name."""
    listed = {after_epoch(n): n for n in sorted(recipe["snapshots"]) if n <= recipe["epochs"]}
    return {INIT: 0, WARMUP: recipe["warmup_epochs"], **listed, END: recipe["epochs"]}


def epoch_of(name: str, warmup: int | None) -> int | None:
    """Return after how many epochs a snapshot was taken, `warmup` of that name; None if unknown."""
    listed = re.fullmatch(r"epoch_(\d+)", name)
    return int(listed[1]) if listed else {INIT: 0, WARMUP: warmup}.get(name)


def place_of(name: str) -> Path:
    """Return where a snapshot lies in the folder of its training."""
    file = Path(f"{name}.safetensors")
    return file if name in (INIT, WARMUP, END) else EPOCHS / file
