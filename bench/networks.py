"""List cut points and attention of one model of every module of timm, in docs/networks.md.

python -m bench.networks
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from vitscope.errors import VitscopeError
from vitscope.networks.attention.finding import FoundAttention, find_attention
from vitscope.networks.building.timm_import import import_timm
from vitscope.networks.finding.blocks import Blocks, list_blocks

DOCUMENT = Path(__file__).parents[1] / "docs" / "networks.md"
HEADER = (
    "| module | model | stem | conv | msa | mlp | mixing | parallel | ssm | pool | stages | "
    "how found | not covered | attention read |"
)
KINDS = ("stem", "conv", "msa", "mlp", "mixing", "parallel", "ssm", "pool")


def models() -> dict[str, str]:
    """Return the first model that timm lists of every module, by the module."""
    registry = import_timm("timm.models._registry")
    first: dict[str, str] = {}
    for model in import_timm().list_models():
        first.setdefault(registry._model_to_module[model], model)
    return dict(sorted(first.items()))


def found_of(model: str) -> tuple[Blocks, FoundAttention]:
    """Return the blocks and the attention of a model of timm, for images of its own size."""
    with torch.device("meta"):
        network = import_timm().create_model(model)
    channels, size, _ = network.pretrained_cfg["input_size"]
    described = {"mean": [0.0] * channels, "image_size": size}
    blocks = list_blocks(model, network, described)
    return blocks, find_attention(network, described, blocks.points)


def attention(found: FoundAttention) -> str:
    """Say how many attentions are read, and why others are not."""
    read, refused = len(found.attentions), Counter(found.refused.values())
    if not read and not refused:
        return ""
    mixed = sum(each.mixed for each in found.attentions)
    said = [f"{read} of {read + refused.total()}"]
    said += [f"{mixed} mixed behind the softmax"] if mixed else []
    return "; ".join([*said, *refused])


def row(module: str, model: str) -> str:
    """Return the row of a module in the table."""
    try:
        blocks, attentions = found_of(model)
    except VitscopeError as error:
        reason = str(error).removeprefix(f"models.{model}: ").partition(";")[0]
        return f"| {module} | `{model}` | {'| ' * len(KINDS)}| refused | {reason} | |"
    kinds = Counter(point.kind for point in blocks.points)
    counts = " | ".join(str(kinds[kind]) if kinds[kind] else "" for kind in KINDS)
    other = Counter(p.how for p in blocks.points if p.how not in ("stem", "join"))
    how = ", ".join(f"{count} {name}" for name, count in other.items()) or "joins"
    stages = max(point.stage for point in blocks.points)
    # As long as a cell can be: the first of the warnings, and how many there are.
    told = [each.removeprefix(f"models.{model}: ") for each in blocks.warnings]
    said = [*blocks.uncovered, *told[:1], *([f"{len(told) - 1} more"] if told[1:] else [])]
    cells = [module, f"`{model}`", counts, str(stages), how, "; ".join(said)]
    return f"| {' | '.join([*cells, attention(attentions)])} |"


def rows() -> Iterator[str]:
    """Yield the rows of all modules."""
    for module, model in models().items():
        yield row(module, model)


def written() -> list[str]:
    """Return the rows that the document has."""
    _, _, table = DOCUMENT.read_text(encoding="utf-8").partition(HEADER + "\n")
    return [line for line in table.splitlines()[1:] if line.startswith("|")]


def main(document: Any = DOCUMENT) -> None:
    """Write the table anew."""
    before = document.read_text(encoding="utf-8").partition(HEADER)[0]
    ruler = "|" + " --- |" * HEADER.count(" | ") + " --- |"
    document.write_text(before + "\n".join([HEADER, ruler, *rows()]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
