from dataclasses import asdict
from pathlib import Path
from typing import Any

from vitscope.data.split import Split
from vitscope.settings.keys import Recipe

# To train on, and to test on.
Splits = tuple[Split, Split]

MEAN, STD = [0.5] * 3, [0.25] * 3
CHANGED = {"mixing_probability": 0.3, "randaugment": "rand-m5-n1-mstd0.5", "shift": 2}
CHANGED |= {"final_learning_rate": 1e-4}
RECIPE: dict[str, Any] = asdict(Recipe(epochs=4, batch_size=50, learning_rate=5e-3, **CHANGED))
PLAIN = RECIPE | {"mixup": 0.0, "cutmix": 0.0, "randaugment": None, "shift": 0, "flip": False}


def break_off(epoch: int, said: str) -> None:
    """Break a training off when it tells of an epoch."""
    if said.startswith(f"epoch {epoch}"):
        raise KeyboardInterrupt


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
