from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from math import isfinite
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from vitscope.errors import VitscopeError
from vitscope.measures.directions import moving_weights
from vitscope.measures.given import OnLoss
from vitscope.measures.landscape.measure import (
    TABLE,
    LandscapeSettings,
    Point,
    grid,
    landscape_points_for_claims,
)
from vitscope.measures.scores import scores_of
from vitscope.networks.running.cuda_graphs import GraphRecording, is_recorded, own_device_stream
from vitscope.networks.running.predictions import score_predictions
from vitscope.progress import Progress
from vitscope.training.batches import AugmentedImages

# Features of processors, x86 or ARM, that multiply bfloat16 faster than float32.
FAST_BFLOAT16 = ("amx_bf16", "avx512_bf16", "sve_bf16")
# The memory layout for each precision: convolutions in bfloat16 are faster if channels come last.
LAYOUTS = {"float32": torch.contiguous_format, "bfloat16": torch.channels_last}
# Images of at most this total size stay on a GPU for all points.
KEPT_BYTES = 2**30


def l2_terms(model: nn.Module) -> dict[str, float]:
    """Return the sum of the 2-norms of all parameter tensors, and the sum of their squares."""
    each = [torch.linalg.vector_norm(p.detach(), dtype=torch.float64) for p in model.parameters()]
    norms = torch.stack(each)
    return {"l2": float(norms.sum()), "l2_squared": float(norms.square().sum())}


def pick_landscape_precision(wanted: str, device: torch.device) -> str:
    """Return float32 or bfloat16; `auto` means bfloat16 if the device has instructions for it."""
    if wanted != "auto":
        return wanted
    if device.type == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float32"
    # Older releases of torch lack this function.
    has: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
    return "bfloat16" if any(has.get(feature) for feature in FAST_BFLOAT16) else "float32"


def batches_at_landscape_points(
    images: AugmentedImages,
    count: int,
    batch_size: int,
    device: torch.device,
    layout: torch.memory_format,
) -> Callable[[], Iterable[tuple[Tensor, Tensor]]]:
    """Return a function that gives the batches of `count` images, to call once at each point."""

    def copy_batches() -> Iterator[tuple[Tensor, Tensor]]:
        for pixels, targets in images.batches(batch_size, count):
            yield pixels.to(device, memory_format=layout), targets

    size = sum(part.numel() for part in images.rows(0, 1)) * count * torch.float32.itemsize
    # Without a GPU there is nothing to keep: images are already mapped into memory.
    kept = [*copy_batches()] if is_recorded(device) and size <= KEPT_BYTES else None
    return copy_batches if kept is None else lambda: kept


def scores_at_landscape_point(
    forward: Callable[[Tensor], Tensor], images: Iterable[tuple[Tensor, Tensor]]
) -> dict[str, float]:
    """Return `nll`, the loss for the soft targets, and scores with the likeliest target as label.

    If any logit is not finite, return only `nll`, as NaN.
    """
    logits, targets = [], []
    for batch, wanted in images:
        logits.append(forward(batch))
        targets.append(wanted)
    # Copy all logits at once, so as to wait for the device only once.
    there = torch.split(torch.cat(logits).cpu(), [len(each) for each in targets])
    if not all(each.isfinite().all() for each in there):
        return {"nll": np.nan}
    scored = []
    for each, wanted in zip(there, targets, strict=True):
        loss = -(wanted.double() * each.double().log_softmax(1)).sum(1)
        scored.append(score_predictions(each, wanted.argmax(1)) | {"loss": loss})
    columns = {key: torch.cat([each[key] for each in scored]).numpy() for key in scored[0]}
    nll = float(columns.pop("loss").mean())
    return scores_of(pd.DataFrame(columns), targets[0].shape[1]) | {"nll": nll}


def losses_at(
    given: OnLoss,
    points: Sequence[Point],
    settings: LandscapeSettings,
    weight_decay: float,
    pair: int = 0,
) -> pd.DataFrame:
    """Return the rows of a landscape table at points of one plane, without the column `model`."""
    images, device, say = given.images, given.device, given.say
    count = settings.images or len(images)
    precision = pick_landscape_precision(settings.precision, device)
    layout = LAYOUTS[precision]
    model = given.network.eval().to(device, memory_format=layout)  # type: ignore[call-overload]
    progress = Progress(len(points), "points", say)
    # The same recording serves all points, since weights move in place.
    recording, rows = GraphRecording(lambda text: say(f"the network {text}")), []
    # Autocast caches converted weights until it ends, so it must end before the weights move. In a
    # recording it must not cache, so that each replay converts the weights again.
    autocast = partial(
        torch.autocast,
        device.type,
        torch.bfloat16,
        enabled=precision == "bfloat16",
        cache_enabled=not is_recorded(device),
    )

    def compute_logits(batch: Tensor) -> tuple[Tensor]:
        return (model(batch).float(),)

    with moving_weights(model, settings.seed, pair) as move, own_device_stream(device):
        batches = batches_at_landscape_points(images, count, settings.batch_size, device, layout)
        for x, y in points:
            move(x, y)
            with torch.inference_mode(), autocast():
                row = scores_at_landscape_point(
                    lambda batch: recording.run(compute_logits, batch)[0], batches()
                )
            if x == y == 0 and not isfinite(row["nll"]):
                raise VitscopeError(
                    f"The loss of the {type(model).__name__} on augmented images is not finite at "
                    f"its trained weights: give a checkpoint of a training that did not diverge."
                )
            rows.append({"direction": pair, "x": x, "y": y} | l2_terms(model) | row)
            progress.advance()
    table = pd.DataFrame(rows).assign(
        images=count,
        precision=precision,
        clean=images.metadata["clean"] == str(True),
        weight_decay=weight_decay,
        loss=lambda rows: rows["nll"] + weight_decay * rows["l2"],
        loss_squared=lambda rows: rows["nll"] + weight_decay / 2 * rows["l2_squared"],
    )
    # Scores that a row lacks, because its logits were not finite, become NaN.
    return table.reindex(columns=[column for column in TABLE.columns if column != "model"])


def measure_landscape(
    given: OnLoss, settings: LandscapeSettings, rows: Sequence[int], weight_decay: float
) -> pd.DataFrame:
    """Return the loss at the points in the grid's rows from `rows[0]` to before `rows[1]`."""
    where = settings.points, settings.radius, range(*rows)
    wanted = [grid(*where)] + [landscape_points_for_claims(*where)] * (settings.directions - 1)
    tables = [
        losses_at(given, chosen, settings, weight_decay, pair)
        for pair, chosen in enumerate(wanted)
        if chosen
    ]
    return pd.concat(tables, ignore_index=True)
