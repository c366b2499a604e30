"""Learning curves, as training recorded them."""

from collections.abc import Mapping

import pandas as pd

from vitscope.measures.given import OnWeights
from vitscope.measures.learning_curves.measure import RECORDED, TABLE
from vitscope.settings.snapshots import END


def measure_learning_curves(given: OnWeights, snapshots: Mapping[str, int]) -> pd.DataFrame:
    """Return what was recorded after each epoch, and by their names which `snapshots` are of it."""
    if given.history is None:
        raise ValueError("learning curves need the history of a training")
    last = int(given.history["epoch"].max())
    recorded = given.history.set_index("epoch")[[*RECORDED]].astype(float)
    # Of the moment before all epochs nothing was recorded.
    rows = recorded.reindex(range(last + 1)).rename_axis("epoch").reset_index()
    taken = {**snapshots, END: last}
    named = pd.Series([_named(taken, epoch) for epoch in rows["epoch"]], dtype=object)
    return rows.assign(model=given.model, snapshots=named)[list(TABLE.columns)]


def _named(taken: Mapping[str, int], epoch: int) -> str | None:
    """Return the names of the snapshots that were taken after so many epochs."""
    return ", ".join(name for name, after in taken.items() if after == epoch) or None
