"""Check a model of a study: find its cut points, prove them, and load its weights."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor, nn

from vitscope.image_size import height_and_width
from vitscope.networks.attention.finding import (
    FoundAttention,
    add_attentions_read,
    find_attention,
)
from vitscope.networks.attention.reading import describe_misread_attentions
from vitscope.networks.building.networks import NetworkEntry, drawn_network, empty_network
from vitscope.networks.checkpoints import weight_sources
from vitscope.networks.checkpoints.conversion import convert, convert_made, load_converted_model
from vitscope.networks.finding.blocks import Blocks, list_blocks
from vitscope.networks.running.asked_interventions import describe_study_interventions
from vitscope.networks.running.joins import Proofs, prove_capture
from vitscope.networks.running.predictions import why_predictions_differ

IMAGES = 2


class _NormalizedImages:
    """Images in memory, as a network takes them."""

    def __init__(self, images: Tensor) -> None:
        self._images = images

    def __len__(self) -> int:
        return len(self._images)

    def batches(
        self, rows: Sequence[int], batch_size: int, mean: Sequence[float], std: Sequence[float]
    ) -> Iterator[Tensor]:
        yield from torch.split(self._images[[*rows]], batch_size)


@dataclass(frozen=True)
class Checked:
    blocks: Blocks
    weights: str
    proofs: Proofs
    attention: FoundAttention
    interventions: int = 0

    def rows(self) -> list[list[str]]:
        header = ["", "cut point", "kind", "stage", "map", "operations", "parameters", "found as"]
        rows = [header]
        for index, point in enumerate(self.blocks.points):
            row = self.blocks.table.iloc[index]
            size = f"{row['channels']}x{row['height']}x{row['width']}"
            about = [str(index), point.name, point.kind, str(point.stage), size]
            rows.append(
                [
                    *about,
                    _short_count(row["operations"]),
                    _short_count(row["parameters"]),
                    point.how,
                ]
            )
        return rows

    def summary(self) -> str:
        kinds = Counter(self.blocks.table["kind"])
        counts = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
        counted = [
            (self.blocks.table[cost].sum() + getattr(self.blocks.head, cost)) / 1e6
            for cost in ("parameters", "operations")
        ]
        refused = self.attention.refused
        said = [
            f"{len(self.blocks.points)} cut points ({counts})",
            "{:.4g} million parameters, {:.4g} million multiply-adds".format(*counted),
            self.weights,
            f"read: {add_attentions_read(self.blocks.read, self.attention)}",
            f"{self.proofs.silenced} branches silenced",
            *([f"interventions: {self.interventions}, tried"] if self.interventions else []),
            *(f"attention not read: {why}" for why in dict.fromkeys(refused.values())),
        ]
        sides = self.blocks.table["norm"].dropna().unique()
        said += [f"read {side} the norms of sums" for side in sides]
        if self.blocks.uncovered:
            said.append("not covered: " + ", ".join(self.blocks.uncovered))
        said += [warning.rstrip(".") for warning in self.blocks.warnings]
        return "; ".join(said)


def _short_count(count: int) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= size:
            return f"{count / size:.3g} {letter}"
    return str(count)


def check_network(
    name: str,
    network: NetworkEntry,
    read_at: Mapping[str, Any],
    checkpoint: Mapping[str, Any],
    study: Path,
    root: Path,
    seed: int | None = None,
) -> Checked:
    """Build a network, find its cut points as `read_at` says, and prove them with its weights."""
    blocks = list_blocks(name, empty_network(network), network, **read_at)
    model, weights = _build_network_to_check(name, network, checkpoint, study, root, seed)
    shape = (IMAGES, len(network["mean"]), *height_and_width(network["image_size"]))
    images = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    proofs = prove_capture(model, blocks.points, images)
    attention = find_attention(model, network, blocks.points)
    proofs.wrong.extend(describe_misread_attentions(model, attention.attentions, images))
    # A network that is not repeatable fails every proof, so report only that cause.
    if why := why_predictions_differ(model, images[:1]):
        proofs.wrong[:] = [why]
    made = _count_interventions(model, network, blocks, images)
    return Checked(blocks, weights, proofs, attention, made)


def _count_interventions(
    model: nn.Module, network: NetworkEntry, blocks: Blocks, images: Tensor
) -> int:
    """Return how many interventions of a study can be made; refuse one that cannot."""
    if "interventions" not in network:
        return 0
    sizes = [*blocks.table[["height", "width"]].itertuples(index=False, name=None)]
    shown = _NormalizedImages(images), torch.device("cpu")
    return len(describe_study_interventions(model, network, blocks.points, sizes, *shown))


def _build_network_to_check(
    name: str,
    network: NetworkEntry,
    checkpoint: Mapping[str, Any],
    study: Path,
    root: Path,
    seed: int | None,
) -> tuple[nn.Module, str]:
    """Return a network, and a description of its weights.

    With a `seed`, they are the initial weights; otherwise those of the checkpoint, if it is local.
    """
    if seed is not None:
        first = "with its first weights, since it is to be trained here"
        return drawn_network(network, seed).eval(), first
    with TemporaryDirectory() as folder:
        target = Path(folder) / "weights.safetensors"
        origin = weight_sources.describe_source(checkpoint)
        if "made" in checkpoint:
            convert_made(network, target, label=name, origin=origin)
            made = "with the weights that its function returns, untrained unless it loads some"
            return load_converted_model(target, network), made
        where = f"{study}: models.{name}.checkpoint"
        source = weight_sources.local_file(where, checkpoint, root, study)
        if source is None:
            later = "weights not compared, since they are to be downloaded"
            return drawn_network(network).eval(), later
        key, ignore = checkpoint.get("key"), checkpoint.get("ignore", ())
        convert(source, network, target, label=name, origin=origin, key=key, ignore=ignore)
        return load_converted_model(target, network), "the weights fit"
