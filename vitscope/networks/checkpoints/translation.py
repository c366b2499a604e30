"""Translate the names of weights in a file to a network's names, and compare both."""

import inspect
import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from vitscope.errors import VitscopeError, first_of, quoted
from vitscope.networks.building.networks import NetworkEntry, empty_network
from vitscope.networks.checkpoints.foreign import DEEPEST_NESTING, StateDict

New = str | Callable[[re.Match[str]], str]


def rename_weights(state_dict: StateDict, pattern: str, new: New) -> StateDict:
    """Replace matches of `pattern` in all names; refuse two names that become the same."""
    renamed: dict[str, str] = {}
    for key in state_dict:
        other = renamed.setdefault(re.sub(pattern, new, key), key)
        if other != key:
            raise VitscopeError(
                f"The checkpoint holds both {quoted(other)} and {quoted(key)}, which are the same "
                f"weights: give the file as it was published."
            )
    return {name: state_dict[key] for name, key in renamed.items()}


@dataclass(frozen=True)
class WeightLayout:
    """The names of weights in a library's network, and how to rename them for timm's `network`."""

    name: str
    network: str
    # Patterns that identify the layout: each must match in some name, at the start or after a dot.
    marks: tuple[str, ...]
    renamed: tuple[tuple[str, New], ...] = ()
    # The pattern of names that are left out.
    without: str = "(?!)"

    def fits(self, names: Iterable[str]) -> bool:
        names = list(names)
        return all(any(re.search(rf"(?:^|\.){mark}", n) for n in names) for mark in self.marks)

    def translate(self, weights: StateDict) -> StateDict:
        kept = {n: tensor for n, tensor in weights.items() if not re.search(self.without, n)}
        for pattern, new in self.renamed:
            kept = rename_weights(kept, pattern, new)
        # Torchvision's ConvNeXt scales its branches by tensors of shape (C, 1, 1), timm's by (C,).
        return {n: t.flatten() if n.endswith(".gamma") else t for n, t in kept.items()}


def is_of_hugging_face(names: Iterable[str]) -> bool:
    return any(re.search(r"(?:^|\.)embeddings\.patch_embeddings\.", name) for name in names)


def find_layout(names: Iterable[str]) -> WeightLayout | None:
    names = list(names)
    return next((layout for layout in LAYOUTS if layout.fits(names)), None)


def _rename_stage(match: re.Match[str]) -> str:
    """Rename a part of `features`: an odd index is a stage, an even index a downsampling layer."""
    number = int(match[1])
    stage = (number - 1) // 2
    if number % 2 == 0:
        return f"stages.{stage + 1}.downsample."
    return f"stages.{stage}.blocks.{match[2]}" if match[2] else match[0]


def _rename_to_next_stage(match: re.Match[str]) -> str:
    """Rename a layer at the end of a stage as one at the start of the next stage."""
    return f"{match[1]}{int(match[2]) + 1}{match[3]}"


_SWIN_BUFFERS = r"\.(?:relative_position_index|relative_coords_table|attn_mask)$"

LAYOUTS = (
    WeightLayout(
        name="torchvision's ViT",
        network="VisionTransformer",
        marks=(
            r"conv_proj\.weight$",
            r"encoder\.layers\.encoder_layer_0\.self_attention\.in_proj_weight$",
        ),
        renamed=(
            (r"^class_token$", "cls_token"),
            (r"^conv_proj\.", "patch_embed.proj."),
            (r"^encoder\.pos_embedding$", "pos_embed"),
            (r"^encoder\.layers\.encoder_layer_(\d+)\.", r"blocks.\1."),
            (r"\.self_attention\.in_proj_(weight|bias)$", r".attn.qkv.\1"),
            (r"\.self_attention\.out_proj\.", ".attn.proj."),
            (r"\.ln_([12])\.", r".norm\1."),
            # The oldest files number the layers of an MLP; later ones name them.
            (r"\.mlp\.(?:0|linear_1)\.", ".mlp.fc1."),
            (r"\.mlp\.(?:3|linear_2)\.", ".mlp.fc2."),
            (r"^encoder\.ln\.", "norm."),
            (r"^heads\.head\.", "head."),
        ),
    ),
    WeightLayout(
        name="torchvision's Swin",
        network="SwinTransformer",
        marks=(r"features\.0\.0\.weight$", r"features\.1\.0\.attn\.relative_position_bias_table$"),
        without=_SWIN_BUFFERS,
        renamed=(
            (r"^features\.0\.0\.", "patch_embed.proj."),
            (r"^features\.0\.2\.", "patch_embed.norm."),
            (r"^features\.([1-9]\d*)\.(\d+(?=\.(?:norm|attn|mlp)))?", _rename_stage),
            (r"^stages\.", "layers."),
            (r"\.mlp\.0\.", ".mlp.fc1."),
            (r"\.mlp\.3\.", ".mlp.fc2."),
            (r"^head\.", "head.fc."),
        ),
    ),
    WeightLayout(
        name="torchvision's ConvNeXt",
        network="ConvNeXt",
        marks=(r"features\.0\.0\.weight$", r"features\.1\.0\.layer_scale$"),
        renamed=(
            (r"^features\.0\.", "stem."),
            (r"^features\.([1-9]\d*)\.(\d+(?=\.(?:block|layer_scale)))?", _rename_stage),
            (r"\.layer_scale$", ".gamma"),
            (r"\.block\.0\.", ".conv_dw."),
            (r"\.block\.2\.", ".norm."),
            (r"\.block\.3\.", ".mlp.fc1."),
            (r"\.block\.5\.", ".mlp.fc2."),
            (r"^classifier\.0\.", "head.norm."),
            (r"^classifier\.2\.", "head.fc."),
        ),
    ),
    WeightLayout(
        name="a ResNet of torchvision or timm",
        network="ResNet",
        marks=(r"conv1\.weight$", r"bn1\.weight$", r"layer1\.0\.conv1\.weight$"),
    ),
    WeightLayout(
        name="a Swin of an earlier timm",
        network="SwinTransformer",
        marks=(r"layers\.0\.downsample\.reduction\.weight$",),
        without=_SWIN_BUFFERS,
        renamed=(
            (r"^(layers\.)(\d+)(\.downsample\.)", _rename_to_next_stage),
            (r"^head\.(weight|bias)$", r"head.fc.\1"),
        ),
    ),
    WeightLayout(
        name="a PiT of an earlier timm",
        network="PoolingVisionTransformer",
        marks=(r"(?:pools\.0|transformers\.0\.pool)\.",),
        renamed=(
            (r"^pools\.(\d+)\.", r"transformers.\1.pool."),
            (r"^(transformers\.)(\d+)(\.pool\.)", _rename_to_next_stage),
        ),
    ),
)


Filter = Callable[..., StateDict]

FILTERS = ("checkpoint_filter_fn", "_filter_fn", "_filter_torchvision_pretrained")
RESIZING = ("upsample", "grid_sampler")
# The names of tables that timm may resize without torch's operations for resizing end like this.
TABLE = "position_bias_table"
MOST_UNKNOWN = 8


class ResizedError(Exception):
    """Raised in place of resizing weights for images of another size."""


class Watched(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records which tensors a translation computes with, and refuses to resize any."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.used: set[int] = set()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> object:
        if any(word in func.name() for word in RESIZING):
            raise ResizedError
        for argument in args:
            each = argument if isinstance(argument, list | tuple) else [argument]
            self.used.update(id(tensor) for tensor in each if isinstance(tensor, Tensor))
        return func(*args, **(kwargs or {}))


def classes_of_timm(model: nn.Module) -> list[type]:
    return [kind for kind in type(model).__mro__ if kind.__module__.startswith("timm.models.")]


def watch_translation(translation: Filter, weights: StateDict) -> tuple[StateDict, set[int]]:
    """Translate weights; return them and the ids of the tensors that took part in operations."""
    with torch.no_grad(), Watched() as watch:
        return translation(weights), watch.used


def translate_by_timm_filter(
    translation: Filter, weights: StateDict, model: nn.Module
) -> StateDict:
    """Translate weights with a timm filter; keep weights whose names the filter does not know."""
    takes = inspect.signature(translation).parameters
    # DeiT III needs this option, which changes no names of other networks.
    options = {"adapt_layer_scale": True} if "adapt_layer_scale" in takes else {}
    given, unknown = dict(weights), StateDict()
    while True:
        try:
            arguments = (dict(given), model)[: len(takes)]
            found = unknown | translation(*arguments, **options)
            break
        except KeyError as error:
            name = error.args[0]
            if name not in given or len(unknown) == MOST_UNKNOWN:
                raise
            unknown[name] = given.pop(name)
    ours = set(map(id, weights.values()))
    if any(name.endswith(TABLE) and id(tensor) not in ours for name, tensor in found.items()):
        raise ResizedError
    return found


SHOWN = 4
SOME_CLASSES = 2


def find_misfits(
    weights: Mapping[str, Tensor], wanted: Mapping[str, Tensor]
) -> tuple[list[str], list[str], list[str]]:
    """Return three lists of names: missing, left over, and of another shape."""
    return (
        [name for name in wanted if name not in weights],
        [name for name in weights if name not in wanted],
        [name for name in wanted if name in weights and weights[name].shape != wanted[name].shape],
    )


def check_translated_names(
    weights: Mapping[str, Tensor],
    wanted: Mapping[str, Tensor],
    network: NetworkEntry,
    what: str,
    *,
    named: Mapping[int, str] | None = None,
    about: str = "",
) -> None:
    """Refuse weights that do not fit `wanted`; `named` maps tensor ids to names in the file."""
    missing, left_over, misshapen = find_misfits(weights, wanted)
    extra = [(named or {}).get(id(weights[name]), name) for name in left_over]
    other = [
        f"{name} (has {_shape_in_words(weights[name])}, needs {_shape_in_words(wanted[name])})"
        for name in misshapen
    ]
    problems = {"missing": missing, "left over": extra, "of another shape": other}
    found = "; ".join(
        f"{kind}: {first_of(names, SHOWN)}" for kind, names in problems.items() if names
    )
    if not found:
        return
    if missing and not other and set(missing) <= classifier_names(network):
        raise VitscopeError(
            f"{what} has no classifier that fits the model ({found}): give `classes: null` to the "
            f"model if only its feature maps are looked at, or a checkpoint of one that classifies."
        )
    if not (missing or other):
        raise VitscopeError(
            f"{what} does not fit the model ({found}{about}): give their names, or patterns of "
            f"them, to `checkpoint.ignore`, or correct the family or the arch."
        )
    raise VitscopeError(
        f"{what} does not fit the model ({found}{about}): correct the family, the arch or the "
        f"number of classes, or `image_size` of the data set."
    )


def classifier_names(network: NetworkEntry) -> set[str]:
    """Return the names of the weights that a network has only if it classifies."""
    some = empty_network({**network, "classes": network["classes"] or SOME_CLASSES})
    return some.state_dict().keys() - empty_network({**network, "classes": None}).state_dict()


def _shape_in_words(tensor: Tensor) -> str:
    return "x".join(map(str, tensor.shape)) or "scalar"


@dataclass(frozen=True)
class Translated:
    """Weights with a network's names, and the names in the file that are `left_out`.

    `by` says whose names the file has, and is empty if nothing was translated. `misfit` counts the
    missing or misshapen weights, and the left-over weights.
    """

    weights: StateDict
    by: str
    left_out: tuple[str, ...]
    misfit: tuple[int, int]

    @property
    def fits(self) -> bool:
        return self.misfit == (0, 0)


# The value of `by` for filters of timm, which do not say whose names they translate.
OF_AUTHORS = "the network's authors"
# Renamed weights, the source of their old names, and the ids of the tensors that were used.
Attempt = tuple[StateDict, str, set[int]]


def translate(weights: StateDict, model: nn.Module, classifier: Collection[str] = ()) -> Translated:
    """Translate weights to a model's names as well as possible.

    Weights with a name in `classifier` are dropped if the model has no such name.
    """
    wanted = model.state_dict()
    # Add counters of batches, which old checkpoints lack and inference ignores.
    counters = {
        name: torch.zeros_like(tensor, device="cpu")
        for name, tensor in wanted.items()
        if name.endswith(".num_batches_tracked")
    }
    best = None
    for found, by, used in _attempt_translations(weights, model):
        kept = {n: tensor for n, tensor in found.items() if n in wanted or n not in classifier}
        there = used.union(map(id, kept.values()))
        left_out = tuple(name for name, tensor in weights.items() if id(tensor) not in there)
        missing, left_over, misshapen = find_misfits(counters | kept, wanted)
        misfit = len(missing) + len(misshapen), len(left_over)
        if best is None or misfit < best.misfit:
            best = Translated(counters | kept, by, left_out, misfit)
        if best.fits:
            break
    assert best is not None
    return best


def _attempt_translations(weights: StateDict, model: nn.Module) -> Iterator[Attempt]:
    """Yield the weights unchanged and by each translation, with and without prefixes of names."""
    if type(model).__module__.startswith("transformers."):
        yield _translate_by_transformers(weights, model)
    modules = [sys.modules[kind.__module__] for kind in classes_of_timm(model)]
    filters = [getattr(module, name, None) for module in modules for name in FILTERS]
    of_timm = next(filter(None, filters), None)
    for inner in _peel_prefixes(weights):
        yield inner, "", set()
        if of_timm is not None:
            # Given another network's file, a filter may raise errors of any type.
            with suppress(Exception):
                found, used = watch_translation(
                    lambda w: translate_by_timm_filter(of_timm, w, model), inner
                )
                yield found, OF_AUTHORS, used
        layout = find_layout(inner)
        if layout is not None and layout_suits(layout, model):
            found, used = watch_translation(layout.translate, inner)
            yield found, layout.name, used


def _translate_by_transformers(weights: StateDict, model: Any) -> Attempt:
    """Translate weights as transformers does on loading; keep weights that it does not use."""
    loaded, about = type(model).from_pretrained(
        None,
        config=model.config,
        state_dict=dict(weights),
        output_loading_info=True,
        ignore_mismatched_sizes=True,
        use_safetensors=True,
    )
    unfit = {*about["missing_keys"], *(name for name, *_ in about["mismatched_keys"])}
    found = {name: tensor for name, tensor in loaded.state_dict().items() if name not in unfit}
    unused = {name: tensor for name, tensor in weights.items() if name in about["unexpected_keys"]}
    used = {id(tensor) for name, tensor in weights.items() if name not in unused}
    return found | unused, "", used


def layout_suits(layout: WeightLayout, model: nn.Module) -> bool:
    return layout.network in (kind.__name__ for kind in classes_of_timm(model))


def _peel_prefixes(weights: StateDict) -> Iterator[StateDict]:
    """Yield the weights, then repeatedly with the most common first part of names removed."""
    yield weights
    for _ in range(DEEPEST_NESTING):
        ((outer, _),) = Counter(name.partition(".")[0] for name in weights).most_common(1)
        inner = {name.removeprefix(f"{outer}."): value for name, value in weights.items()}
        if len(inner) < len(weights) or inner.keys() == weights.keys():
            return
        weights = inner
        yield weights
