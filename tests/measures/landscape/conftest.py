from pathlib import Path

import pandas as pd
import pytest


@pytest.fixture
def grids(shared: Path) -> pd.DataFrame:
    """The authors' grids of the paper's Fig. 1a, in their order."""
    files = {"resnet": "landscape_resnet_50.csv", "vit": "landscape_vit_ti.csv"}
    folder = shared / "published"
    if not folder.is_dir():
        pytest.skip(f"needs the published grids, in {folder}")
    columns = {0: "x", 1: "y", 3: "l2", 4: "nll", 7: "accuracy"}
    read = [
        pd.read_csv(folder / file, header=None)[[*columns]].assign(model=model)
        for model, file in files.items()
    ]
    grids = pd.concat(read, ignore_index=True).rename(columns=columns).round({"x": 6, "y": 6})
    facts = {"direction": 0, "weight_decay": 0.05, "clean": False}
    return grids.assign(**facts, loss=grids["nll"] + 0.05 * grids["l2"])
