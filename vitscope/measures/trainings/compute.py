from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from vitscope.errors import VitscopeError
from vitscope.files.tensors import TensorFile
from vitscope.measures.given import OnWeights
from vitscope.measures.trainings.measure import LEARNING_CURVES_TABLE, RECORDED
from vitscope.settings.snapshots import END
from vitscope.training.trajectory import check_trajectory_length, polar_trajectory


def measure_learning_curves(given: OnWeights, snapshots: Mapping[str, int]) -> pd.DataFrame:
    """Return the record of each epoch, and the names of the snapshots taken after that epoch.

    `snapshots` maps the name of each snapshot to its epoch.
    """
    assert given.history is not None, "learning curves need the history of a training"
    last = int(given.history["epoch"].max())
    recorded = given.history.set_index("epoch")[[*RECORDED]].astype(float)
    # Add a row of nulls for epoch 0: nothing was recorded before training.
    rows = recorded.reindex(range(last + 1)).rename_axis("epoch").reset_index()
    taken = {**snapshots, END: last}
    names = [
        ", ".join(name for name, after in taken.items() if after == epoch) or None
        for epoch in rows["epoch"]
    ]
    named = pd.Series(names, dtype=object)
    return rows.assign(model=given.model, snapshots=named)[list(LEARNING_CURVES_TABLE.columns)]


def trajectory_of_snapshots(
    snapshots: Mapping[str, TensorFile], parameters: Iterable[str], warmup: str | None
) -> pd.DataFrame:
    """Compute the trajectory through snapshots, in the order of the mapping.

    Only the tensors named in `parameters` count: buffers are not trained.
    """
    files = list(snapshots.values())
    tensors = ([file.array(name).ravel() for file in files] for name in parameters)
    points = polar_trajectory(len(files), tensors)
    return _trajectory_table(points, list(snapshots), warmup, "snapshots")


def recorded_trajectory(history: pd.DataFrame, warmup: str | None, where: str) -> pd.DataFrame:
    """Return the trajectory that training recorded after each epoch, starting with epoch 0.

    `where` names the record in errors.
    """
    if history[["radius", "angle"]].isna().to_numpy().any():
        raise VitscopeError(
            f"{where} records no trajectory: train with `trajectory: true`, or leave out the "
            f"`history` of the model and name its `snapshots`."
        )
    check_trajectory_length(len(history) + 1)
    start = pd.DataFrame({"epoch": [0], "radius": [1.0], "angle": [0.0]})
    points = pd.concat([start, history.sort_values("epoch")[list(start)]], ignore_index=True)
    return _trajectory_table(points, [str(epoch) for epoch in points["epoch"]], warmup, "history")


def _trajectory_table(
    points: pd.DataFrame, names: Sequence[str], warmup: str | None, source: str
) -> pd.DataFrame:
    moments = points[["radius", "angle"]].assign(moment=names, order=range(len(points)))
    # The first moment does not end the warm-up, even if the recipe has 0 epochs of warm-up.
    ends = (moments["moment"] == warmup) & (moments["order"] > 0)
    return moments.assign(ends_warmup=ends, source=source)


def measure_trajectory(
    given: OnWeights,
    warmup: str | None,
    names: Sequence[str] = (),
    network: Mapping[str, Any] | None = None,
) -> pd.DataFrame:
    """Return the trajectory that was recorded, or else the one through the snapshots.

    `names` are the names of the snapshots, in order.
    """
    if given.history is not None:
        where = f"The history of {given.model}"
        return recorded_trajectory(given.history, warmup, where).assign(model=given.model)
    assert network is not None, "a trajectory through snapshots needs the network"
    # Import torch only for snapshots: a recorded trajectory needs none.
    from vitscope.networks.building.networks import parameter_names

    snapshots = dict(zip(names, given.snapshots, strict=True))
    return trajectory_of_snapshots(snapshots, parameter_names(network), warmup).assign(
        model=given.model
    )
