"""Run the network and read the vectors to probe, without keeping feature maps.

The latents on disk lack prefix tokens, labels and pixels, so a pass of its own reads everything.
"""

from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d

from vitscope.data.split import labels_of, shard_rows
from vitscope.errors import VitscopeError
from vitscope.files.arrays import Array
from vitscope.measures.given import OnModel
from vitscope.measures.measure import Given
from vitscope.measures.probe.measure import MEAN, PREFIX, TOKEN
from vitscope.networks.finding.capture import capturing_tensors

# The pixels of a cell are averaged to at most `DETAIL` x `DETAIL` means.
DETAIL = 4
_NO_PIXELS = np.empty(0, np.float32)


def draw_probed_places(first: int, images: int, tokens: int) -> Array:
    """Draw places of tokens (images, tokens, 2), from 0 to 1, for images from index `first` on.

    The places of an image depend only on its index.
    """
    return np.random.default_rng(0).random((first + images, tokens, 2))[first:]


def pixels_of_probed_cells(
    images: Tensor, grid: tuple[int, int], rows: Tensor, columns: Tensor
) -> Tensor:
    """Return means (N, T, colours * means) of the pixels in some cells of a grid over images.

    `rows` and `columns` (N, T) are the indices of the cells.
    """
    (height, width), size = grid, images.shape[2:]
    down, across = (max(1, min(DETAIL, n // m)) for n, m in zip(size, grid, strict=True))
    small = adaptive_avg_pool2d(images, (height * down, width * across))
    split = small.reshape(*images.shape[:2], height, down, width, across)
    each = torch.arange(len(images), device=images.device)[:, None]
    return split[each, :, rows, :, columns, :].flatten(2)


class _ProbedVectors:
    def __init__(self, given: OnModel, known: pd.DataFrame, places: Array) -> None:
        self._points, self._known = given.cut_points, known
        self._places = torch.from_numpy(places).to(given.device)
        self._batch, self._first = torch.empty(0), 0
        self.tables: list[pd.DataFrame] = []

    def begin(self, batch: Tensor) -> None:
        """Start a batch: from now on, `read` gets feature maps of these images."""
        self._first, self._batch = self._first + len(self._batch), batch

    def read(self, index: int, tensor: Tensor) -> None:
        """Add the mean, the prefix token and the drawn tokens of each image at a cut point.

        Refuse a feature map that is not finite.
        """
        point, known = self._points[index], self._known[self._first :][: len(self._batch)]
        maps = point.layout.to_nchw(tensor).float()
        if not bool(maps.isfinite().all()):
            image = known["image"].iloc[int((~maps.isfinite()).flatten(1).any(1).int().argmax())]
            raise VitscopeError(
                f"The feature map at {point.name} is not finite for image {image}: check the "
                "checkpoint and the model's mean and std."
            )
        self._add_rows(known.assign(of=MEAN, token=0), index, maps.mean((2, 3)))
        prefix = point.layout.first_prefix(tensor)
        if prefix is not None:
            self._add_rows(known.assign(of=PREFIX, token=0), index, prefix.float())
        self._add_tokens(known, index, maps)

    def _add_tokens(self, known: pd.DataFrame, index: int, maps: Tensor) -> None:
        images, _, *grid = maps.shape
        size = torch.tensor(grid, device=maps.device)
        places = self._places[self._first : self._first + images]
        rows, columns = (places * size).long().unbind(-1)
        each = torch.arange(images, device=maps.device)[:, None]
        norms = maps.norm(dim=1)
        medians = norms.flatten(1).quantile(0.5, dim=1).clamp_min(torch.finfo(norms.dtype).tiny)
        norms = norms[each, rows, columns] / medians[:, None]
        pixels = pixels_of_probed_cells(self._batch, (grid[0], grid[1]), rows, columns)
        vectors = maps[each, :, rows, columns]
        for token in range(places.shape[1]):
            found: dict[str, Any] = {
                "row": (_to_array(rows[:, token]) + 0.5) / grid[0],
                "column": (_to_array(columns[:, token]) + 0.5) / grid[1],
                "norm": _to_array(norms[:, token]),
                "pixels": list(_to_array(pixels[:, token])),
            }
            self._add_rows(known.assign(of=TOKEN, token=token, **found), index, vectors[:, token])

    def _add_rows(self, rows: pd.DataFrame, index: int, vectors: Tensor) -> None:
        found: dict[str, Any] = {"index": index, "vector": list(_to_array(vectors))}
        if "pixels" not in rows:
            found |= dict.fromkeys(("row", "column", "norm"), np.nan)
            found["pixels"] = [_NO_PIXELS] * len(rows)
        self.tables.append(rows.assign(**found))


def _to_array(values: Tensor) -> Array:
    return values.cpu().numpy()


def measure_probe(given: OnModel, shard: int, selection: Given, tokens: int) -> pd.DataFrame:
    """Return the vectors of a shard's images at all cut points, with labels and predictions."""
    network = given.network.eval().to(given.device)
    rows = shard_rows(len(given.images), shard, **selection)
    first = shard * selection["shard_size"]
    known = {
        "image": rows,
        "label": labels_of(given.images, rows),
        "predicted": np.full(len(rows), -1),
    }
    vectors = _ProbedVectors(
        given, pd.DataFrame(known), draw_probed_places(first, len(rows), tokens)
    )
    predicted = []
    with capturing_tensors(network, given.cut_points, vectors.read), torch.inference_mode():
        for batch in given.batches(rows):
            shown = batch.to(given.device)
            vectors.begin(shown)
            logits = network(shown)
            if given.settings["classes"] is not None:
                predicted += logits.argmax(1).tolist()
    table = pd.concat(vectors.tables, ignore_index=True)
    if predicted:
        table["predicted"] = np.asarray(predicted)[np.searchsorted(rows, table["image"])]
    return table
