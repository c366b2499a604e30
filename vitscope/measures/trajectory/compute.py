"""Learning trajectories in polar coordinates around the trained weights: Fig. 1b of the paper."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from vitscope.errors import VitscopeError
from vitscope.files.tensors import TensorFile
from vitscope.measures.given import OnWeights

Array = npt.NDArray[Any]

# Weights are read in pieces of at most this many numbers, so that those of all moments are never
# in memory at once.
PIECE = 1 << 18


def polar(moments: Sequence[Array]) -> pd.DataFrame:
    """Return radius and angle of each moment of the weights, flat vectors from first to last.

    With d_t = w_t - w_end, the radius is |d_t| / |d_0| and the angle that between d_t and d_0, in
    radians. At the end both are 0: d_end has no direction of its own.
    """
    return _polar(len(moments), [moments])


def traced(
    snapshots: Mapping[str, TensorFile], parameters: Iterable[str], warmup: str | None
) -> pd.DataFrame:
    """Return the trajectory through snapshots by their names, from first to last.

    Only the `parameters` of the model count: buffers are not trained.
    """
    files = list(snapshots.values())
    tensors = ([file.array(name).ravel() for file in files] for name in parameters)
    points = _polar(len(files), tensors)
    return _as_table(points, list(snapshots), warmup).assign(source="snapshots")


def recorded(history: pd.DataFrame, warmup: str | None, where: str) -> pd.DataFrame:
    """Return the trajectory that training recorded after each epoch, and its start.

    `where` is what an error calls the record.
    """
    if history[["radius", "angle"]].isna().to_numpy().any():
        raise VitscopeError(
            f"{where} records no trajectory: train with `trajectory: true`, or leave out the "
            f"`history` of the model and name its `snapshots`."
        )
    _check_count(len(history) + 1)
    start = pd.DataFrame({"epoch": [0], "radius": [1.0], "angle": [0.0]})
    points = pd.concat([start, history.sort_values("epoch")[list(start)]], ignore_index=True)
    return _as_table(points, [str(epoch) for epoch in points["epoch"]], warmup).assign(
        source="history"
    )


def _as_table(points: pd.DataFrame, names: Sequence[str], warmup: str | None) -> pd.DataFrame:
    """Return points in their order as rows of a trajectory table, without model and source."""
    moments = points[["radius", "angle"]].assign(moment=names, order=range(len(points)))
    # The first moment ends no warm-up, even if the recipe has 0 epochs of it.
    return moments.assign(ends_warmup=(moments["moment"] == warmup) & (moments["order"] > 0))


def _check_count(moments: int) -> None:
    if moments < 3:
        raise VitscopeError(
            f"A trajectory needs 3 moments at least, the first, the last and one between them, "
            f"and there are {moments}: name more `snapshots` of the model, or train for longer."
        )


def _polar(count: int, tensors: Iterable[Sequence[Array]]) -> pd.DataFrame:
    """Return radius and angle of `count` moments; each of `tensors` is given at all of them."""
    _check_count(count)
    squares, products = _inner_products(count, tensors)
    start = squares[0]
    if start == 0:
        raise VitscopeError(
            "The first and the last snapshot of the trajectory are the same weights: name the "
            "`snapshots` of a model from its initialization to its end."
        )
    lengths = np.sqrt(squares)
    with np.errstate(invalid="ignore", divide="ignore"):
        cosines = products / (lengths * lengths[0])
    angles = np.arccos(np.clip(cosines, -1, 1))
    angles[squares == 0] = 0
    return pd.DataFrame({"radius": lengths / lengths[0], "angle": angles})


def _inner_products(count: int, tensors: Iterable[Sequence[Array]]) -> tuple[Array, Array]:
    """Return d_t . d_t and d_t . d_0 of every moment, in double precision."""
    squares, products = np.zeros(count), np.zeros(count)
    for moments in tensors:
        for first in range(0, moments[0].size, PIECE):
            piece = np.stack([m[first : first + PIECE].astype(np.float64) for m in moments])
            piece -= piece[-1].copy()
            squares += np.vecdot(piece, piece)
            products += np.vecdot(piece, piece[0])
    return squares, products


def measure(
    given: OnWeights,
    warmup: str | None,
    names: Sequence[str] = (),
    network: Mapping[str, Any] | None = None,
) -> pd.DataFrame:
    """Return the trajectory of a model, as recorded or through its snapshots by their `names`."""
    if given.history is not None:
        where = f"The history of {given.model}"
        return recorded(given.history, warmup, where).assign(model=given.model)
    if network is None:
        raise ValueError("a trajectory through snapshots needs the network")
    # Imported here: what was recorded in training is read without torch.
    from vitscope.networks.empty import parameter_names

    parameters = parameter_names(
        network["family"], network["arch"], network["classes"], network["image_size"]
    )
    snapshots = dict(zip(names, given.snapshots, strict=True))
    return traced(snapshots, parameters, warmup).assign(model=given.model)
