"""The block table: the ordered cut points of a model, from which every figure takes its bands."""

from collections.abc import Sequence

import pandas as pd
import torch
from torch import Tensor, nn

from vitscope.networks.capture import reading
from vitscope.networks.families import CutPoint


def block_table(
    name: str, model: nn.Module, cut_points: Sequence[CutPoint], image_size: int
) -> pd.DataFrame:
    """Return one row per cut point of `model`, measured in one forward pass of a blank image."""
    shapes: list[tuple[int, ...]] = []
    parameters = [0] * (len(cut_points) + 1)
    counted: set[int] = set()

    def count(module: nn.Module, _: object) -> None:
        own = [p for p in module.parameters(recurse=False) if id(p) not in counted]
        counted.update(id(p) for p in own)
        parameters[len(shapes)] += sum(p.numel() for p in own)

    def note_shape(_: int, latent: Tensor) -> None:
        shapes.append(tuple(latent.shape[1:]))

    with reading(model, cut_points, note_shape), torch.inference_mode():
        # Registered after the readers: what a cut point's module owns comes after that cut.
        hooks = [module.register_forward_pre_hook(count) for module in model.modules()]
        try:
            parameter = next(model.parameters())
            model(parameter.new_zeros(1, 3, image_size, image_size))
        finally:
            for hook in hooks:
                hook.remove()

    last = max(len(cut_points) - 1, 1)
    return pd.DataFrame(
        {
            "model": name,
            "index": index,
            "name": cut_point.name,
            "kind": cut_point.kind,
            "stage": cut_point.stage,
            "depth": index / last,
            "channels": channels,
            "height": height,
            "width": width,
            "parameters": parameters[index],
        }
        for index, (cut_point, (channels, height, width)) in enumerate(
            zip(cut_points, shapes, strict=True)
        )
    )
