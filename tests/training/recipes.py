from typing import Any

MEAN, STD = [0.5] * 3, [0.25] * 3
RECIPE: dict[str, Any] = {
    "epochs": 4,
    "batch_size": 50,
    "learning_rate": 5e-3,
    "final_learning_rate": 1e-4,
    "warmup_epochs": 1,
    "weight_decay": 0.05,
    "label_smoothing": 0.1,
    "mixup": 0.8,
    "cutmix": 1.0,
    "mixing_probability": 0.3,
    "randaugment": "rand-m5-n1-mstd0.5",
    "shift": 2,
    "flip": True,
    "clip_gradient": 1.0,
    "sam": None,
    "bfloat16": True,
    "compile": "auto",
    "snapshot_dtype": "float32",
    "images": None,
    "seed": 0,
    "trajectory": False,
    "snapshots": [],
    "erasing": 0.0,
    "erased": "noise",
    "border": "reflection",
    "crop": None,
    "color_jitter": 0.0,
}
PLAIN = RECIPE | {"mixup": 0.0, "cutmix": 0.0, "randaugment": None, "shift": 0, "flip": False}
