"""The attention of a model that is measured."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import nn

from vitscope.errors import VitscopeError, quoted
from vitscope.measures import registry
from vitscope.measures.given import OnModel
from vitscope.networks.attention.finding import FoundAttention, find_attention
from vitscope.networks.attention.reading import Attention
from vitscope.networks.finding.cut_points import CutPoint


def attention_of(given: OnModel) -> list[Attention]:
    """Return the attention of a model, and warn of attention that cannot be read."""
    attentions, warnings = attention_in(
        given.network, given.settings, given.cut_points, f"models.{given.model}"
    )
    given.warnings.extend(warnings)
    return attentions


def attention_in(
    network: nn.Module, settings: Mapping[str, Any], cut_points: Sequence[CutPoint], where: str
) -> tuple[list[Attention], list[str]]:
    """Return the attention of a network, and a sentence for each doubt about it.

    A network in which there is none is refused; `where` is what messages call it.
    """
    found = find_attention(network, settings, cut_points)
    refusal = explain_none(found)
    if refusal is not None:
        raise VitscopeError(f"{where}: {refusal}")
    return found.attentions, [f"{where}: {doubt}" for doubt in list_doubts(found)]


def explain_none(found: FoundAttention) -> str | None:
    """Say why there is no attention to read, and what can be drawn without; None if there is."""
    if found.attentions:
        return None
    others = [
        name
        for name, kind in registry.kinds().items()
        if not registry.declared(kind.measure).reads_attention
    ]
    why = (
        f"none of its {len(found.refused)} attentions can be read: {_list_refused(found)}"
        if found.refused
        else "no attention was found: nowhere is a softmax taken of products of queries and keys"
    )
    return f"{why}. Kinds of figures that need none are {', '.join(sorted(others))}."


def list_doubts(found: FoundAttention) -> list[str]:
    """Say what of the attention is not read, or not as it is used."""
    said = []
    if found.refused:
        total = len(found.refused) + len(found.attentions)
        said.append(
            f"{len(found.refused)} of {total} attentions are not read: {_list_refused(found)}."
        )
    mixed = [each.name for each in found.attentions if each.mixed]
    if mixed:
        said.append(
            f"in {len(mixed)} attentions, as in {quoted(mixed[0])}, heads are mixed behind the "
            f"softmax: what is read is the softmax."
        )
    return said


def _list_refused(found: FoundAttention) -> str:
    """Name all that cannot be read, by what the reason is."""
    names: dict[str, list[str]] = {}
    for name, why in found.refused.items():
        names.setdefault(why, []).append(quoted(name or "the network"))
    return "; ".join(f"{', '.join(those)} ({why})" for why, those in names.items())
