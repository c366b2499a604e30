from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from vitscope.errors import VitscopeError
from vitscope.files.arrays import Array
from vitscope.measures.bootstrap import spread_of
from vitscope.measures.given import OnModel
from vitscope.measures.measure import Given
from vitscope.measures.shown import rows_shown
from vitscope.networks.building.networks import without_fast_path
from vitscope.networks.finding.cut_points import CUT_POINT, CutPoint, Layout
from vitscope.networks.running.joins import PROVED, JoinReader, refuse_unproven_capture

# Maps a cut point and a kind of token to the logarithm of the ratio for each image, (N,).
Logs = dict[tuple[int, str], Array]


def _tokens_by_kind(layout: Layout, operand: Tensor) -> dict[str, Tensor]:
    """Split an operand of a sum into tokens of positions and, if there is one, the class token."""
    if layout.grid is None:
        return {"positions": operand}
    found = {"positions": layout.to_nchw(operand)}
    first = layout.first_prefix(operand)
    return found if first is None else found | {"class_token": first}


def log_skip_ratios(stream: Tensor, branch: Tensor, images: int) -> Array:
    """Return log(norm of stream / norm of branch) for each image; NaN if either norm is zero."""
    kind = torch.complex128 if stream.is_complex() or branch.is_complex() else torch.float64
    flat = [each.to(kind).reshape(images, -1) for each in (stream, branch)]
    norms = [torch.linalg.vector_norm(each, dim=1).log() for each in flat]
    ratios = norms[0] - norms[1]
    result: Array = ratios.where(ratios.isfinite(), torch.nan).cpu().numpy()
    return result


@torch.inference_mode()
def read_skip_ratios(
    network: nn.Module,
    points: Sequence[CutPoint],
    batches: Iterable[Tensor],
    device: torch.device | None = None,
) -> Logs:
    """Run the network; return the log ratios of all images at every sum of stream and branch."""
    network = network.eval().to(device)
    found: dict[tuple[int, str], list[Array]] = {}

    def keep_skip_ratios(index: int, stream: Tensor, branch: Tensor) -> None:
        streams, branches = (_tokens_by_kind(layouts[index], each) for each in (stream, branch))
        for kind, maps in streams.items():
            found.setdefault((index, kind), []).append(
                log_skip_ratios(maps, branches[kind], images)
            )

    joins = {point.join: at for at, point in enumerate(points) if point.join and point.join.layout}
    layouts = {at: join.layout for join, at in joins.items() if join.layout}
    for batch in batches:
        images = len(batch)
        with without_fast_path(), JoinReader(network, joins, keep_skip_ratios) as reader:
            network(batch.to(device))
        reader.check()
    return {key: np.concatenate(values) for key, values in found.items()}


def ratio_table(logs: Logs, blocks: pd.DataFrame, bootstrap: Given) -> pd.DataFrame:
    """Return a row for each key of `logs`: the geometric mean ratio over images, with interval."""
    values = np.stack([*logs.values()], axis=1)
    ends = spread_of(np.exp, values, **bootstrap).columns("ratio")
    found = pd.DataFrame([*logs], columns=["index", "tokens"]).assign(
        images=len(values), ratio=np.exp(values.mean(axis=0)), **ends
    )
    return blocks[[*CUT_POINT]].merge(found, on="index", validate="one_to_many")


def measure_skip_ratio(given: OnModel, chosen: Given, bootstrap: Given) -> pd.DataFrame:
    if not any(point.join and point.join.layout for point in given.cut_points):
        raise VitscopeError(
            f"models.{given.model}: no cut point of the model has a residual branch that can be "
            f"read: take the model out of the figures of the kind skip_ratio."
        )
    rows = rows_shown(given, **chosen)
    network, (first, *_) = given.network.eval().to(given.device), given.batches(rows[:PROVED])
    refuse_unproven_capture(
        f"models.{given.model}", network, given.cut_points, first.to(given.device)
    )
    logs = read_skip_ratios(network, given.cut_points, given.batches(rows), given.device)
    return ratio_table(logs, given.blocks, bootstrap)
