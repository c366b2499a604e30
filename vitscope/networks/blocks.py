"""The block table: the ordered cut points of a network, from which every figure takes its bands.

The network is run once on torch's meta device, where nothing is computed and only shapes are known,
with or without weights. There attention is a product of matrices, a softmax and another product: on
other devices it may be one operation that keeps less in memory.
"""

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.utils.flop_counter import FlopCounterMode

from vitscope.networks.activations import ActivationCounter
from vitscope.networks.block_table import Part
from vitscope.networks.capture import capturing
from vitscope.networks.compiler import without_compiler
from vitscope.networks.cut_points import CutPoint

Shape = tuple[int, ...]


class Blocks(NamedTuple):
    """The block table of a network, and what its part behind the last cut point costs."""

    table: pd.DataFrame
    head: Part


def list_blocks(
    name: str, model: nn.Module, cut_points: Sequence[CutPoint], image_size: int
) -> Blocks:
    """Return one row per cut point of `model`, and its head."""
    shapes, parts = _measured(model.eval(), cut_points, image_size)
    last = max(len(cut_points) - 1, 1)
    table = pd.DataFrame(
        {
            "model": name,
            "index": index,
            "name": cut_point.name,
            "kind": cut_point.kind,
            "stage": cut_point.stage,
            "depth": index / last,
            **dict(zip(("channels", "height", "width"), shape, strict=True)),
            **part._asdict(),
        }
        for index, (cut_point, shape, part) in enumerate(
            zip(cut_points, shapes, parts[:-1], strict=True)
        )
    )
    return Blocks(table, parts[-1])


def block_table(
    name: str, model: nn.Module, cut_points: Sequence[CutPoint], image_size: int
) -> pd.DataFrame:
    """Return one row per cut point of `model`."""
    return list_blocks(name, model, cut_points, image_size).table


def _measured(
    model: nn.Module, cut_points: Sequence[CutPoint], image_size: int
) -> tuple[list[Shape], list[Part]]:
    """Return the shapes at the cut points, and the parts that they cut the network into."""
    shapes: list[Shape] = []
    parts: list[Part] = []
    weights = _ParameterCounter()
    operations, activations = FlopCounterMode(display=False), ActivationCounter()

    def end_part() -> None:
        # FLOPs are two for every multiply-add.
        total = operations.get_total_flops() // 2
        before = sum(part.operations for part in parts)
        parts.append(Part(weights.take(), total - before, *activations.take()))

    def cut(_: int, latent: Tensor) -> None:
        shapes.append(tuple(latent.shape[1:]))
        end_part()

    with torch.no_grad(), capturing(model, cut_points, cut):
        # Registered after the cut points: what their modules own comes after the cut.
        hooks = [module.register_forward_pre_hook(weights.count) for module in model.modules()]
        try:
            tensors, image = _on_meta(model), _blank_image(model, image_size)
            # The first operation that a counter sees imports the compiler otherwise.
            with without_compiler(), operations, activations:
                functional_call(model, tensors, image)
        finally:
            for hook in hooks:
                hook.remove()
    end_part()
    return shapes, parts


def _on_meta(model: nn.Module) -> dict[str, Tensor]:
    """Return the parameters and buffers of a network by their names, as shapes without values."""
    named = [*model.named_parameters(), *model.named_buffers()]
    return {name: tensor.detach().to("meta") for name, tensor in named}


def _blank_image(model: nn.Module, size: int) -> Tensor:
    return torch.empty(1, 3, size, size, dtype=next(model.parameters()).dtype, device="meta")


class _ParameterCounter:
    """Counts the parameters of modules that run, each parameter once."""

    def __init__(self) -> None:
        self._seen: set[int] = set()
        self._count = 0

    def count(self, module: nn.Module, _: object) -> None:
        """Count the parameters that a module itself owns."""
        for parameter in module.parameters(recurse=False):
            if id(parameter) not in self._seen:
                self._seen.add(id(parameter))
                self._count += parameter.numel()

    def take(self) -> int:
        """Return the count, and start another."""
        count, self._count = self._count, 0
        return count
