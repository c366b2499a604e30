"""Learning trajectories in polar coordinates around the trained weights: Fig. 1b of the paper."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from vitscope.errors import VitscopeError
from vitscope.files.tensors import TensorFile
from vitscope.measures.given import OnWeights
from vitscope.training.polar import check_count, polar_by_tensor


def traced(
    snapshots: Mapping[str, TensorFile], parameters: Iterable[str], warmup: str | None
) -> pd.DataFrame:
    """Return the trajectory through snapshots by their names, from first to last.

    It is that of the `parameters` of the model: training does not move its buffers by gradients.
    """
    files = list(snapshots.values())
    tensors = ([file.array(name).ravel() for file in files] for name in parameters)
    points = polar_by_tensor(len(files), tensors)
    return _as_table(points, list(snapshots), warmup).assign(source="snapshots")


def recorded(history: pd.DataFrame, warmup: str | None, where: str) -> pd.DataFrame:
    """Return the trajectory that training recorded at the end of every epoch, from its start."""
    if history[["radius", "angle"]].isna().to_numpy().any():
        raise VitscopeError(
            f"{where} records no trajectory: train with `trajectory: true`, or leave out the "
            f"`history` of the model and name its `snapshots`."
        )
    check_count(len(history) + 1)
    start = pd.DataFrame({"epoch": [0], "radius": [1.0], "angle": [0.0]})
    points = pd.concat([start, history.sort_values("epoch")[list(start)]], ignore_index=True)
    return _as_table(points, [str(epoch) for epoch in points["epoch"]], warmup).assign(
        source="history"
    )


def _as_table(points: pd.DataFrame, names: Sequence[str], warmup: str | None) -> pd.DataFrame:
    """Return the columns of a trajectory table that points in their order have."""
    moments = points[["radius", "angle"]].assign(moment=names, order=range(len(points)))
    # Without a warm-up there is no end of one.
    return moments.assign(ends_warmup=(moments["moment"] == warmup) & (moments["order"] > 0))


def measure(
    given: OnWeights,
    model: str,
    warmup: str | None,
    names: Sequence[str] = (),
    network: Mapping[str, Any] | None = None,
) -> pd.DataFrame:
    """Return the trajectory of a model, as recorded or through its snapshots by their `names`."""
    if given.history is not None:
        return recorded(given.history, warmup, f"The history of {model}").assign(model=model)
    if network is None:
        raise ValueError("a trajectory through snapshots needs the network")
    # Imported here: what was recorded in training is read without torch.
    from vitscope.networks.empty import parameter_names

    parameters = parameter_names(
        network["family"], network["arch"], network["classes"], network["image_size"]
    )
    snapshots = dict(zip(names, given.snapshots, strict=True))
    return traced(snapshots, parameters, warmup).assign(model=model)
