"""What the families have in common that timm implements."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from vitscope.errors import VitscopeError, nearest
from vitscope.networks.cut_points import CutPoint, Kind, Layout
from vitscope.networks.timm_import import import_timm

ATTENTION_AND_MLP: tuple[tuple[str, Kind], tuple[str, Kind]] = (("attn", "msa"), ("mlp", "mlp"))


def build_timm(network: type[nn.Module], arch: Mapping[str, Any], **options: Any) -> nn.Module:
    """Build the model of timm that `arch` names, or else a `network` of the given dimensions."""
    options = {**arch, **options}
    name = options.pop("name", None)
    if name is None:
        return network(**options)
    timm = import_timm()
    if not timm.is_model(name):
        raise VitscopeError(f"timm has no model '{name}'.{nearest(name, timm.list_models())}")
    # Looked at before it is built, because networks of another kind refuse our options.
    with torch.device("meta"):
        kind = type(timm.create_model(name))
    if not issubclass(kind, network):
        raise VitscopeError(
            f"The model '{name}' of timm is a {kind.__name__} and not a {network.__name__}; "
            "choose the family that fits it."
        )
    model: nn.Module = timm.create_model(name, **options)
    return model


def require_blocks(blocks: Sequence[nn.Module], kind: type[nn.Module]) -> None:
    """Refuse a model whose blocks keep the residual stream where the cut points do not look."""
    for block in blocks:
        if type(block) is not kind:
            raise VitscopeError(
                f"The blocks of this model are {type(block).__name__} where the family reads "
                f"{kind.__name__}; choose another model or add a family for it."
            )


def sub_blocks(
    block: str,
    stage: int,
    between: Layout,
    after: Layout,
    branches: tuple[tuple[str, Kind], tuple[str, Kind]] = ATTENTION_AND_MLP,
) -> list[CutPoint]:
    """List the stream between and after the two residual branches of a pre-norm block.

    The second normalization takes the stream after the first branch, DropPath included.
    """
    (first, first_kind), (second, second_kind) = branches
    middle, last = f"{block}.{first}", f"{block}.{second}"
    return [
        CutPoint(middle, first_kind, stage, f"{block}.norm2", "input", between, middle),
        CutPoint(last, second_kind, stage, block, "output", after, last),
    ]
