"""Networks as a study describes them: built and filled; what they are given and return."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves
from torch.utils.hooks import RemovableHandle

from vitscope.errors import VitscopeError, nearest, quoted
from vitscope.networks.building.family import build_network, find_family

# Choose the logits among several tensors by name, or by number from 0.
Output = int | str | None
# Networks give these names to the module that computes their logits.
HEADS = frozenset({"head", "heads", "fc", "classifier", "last_linear"})


def adapt(network: nn.Module, *, logits: bool, output: Output = None) -> list[RemovableHandle]:
    """Let a network take images of any type and return its logits alone, if any, or `output`."""
    hooks = [network.register_forward_pre_hook(_in_own_type)]
    if logits or output is not None:
        hooks.append(network.register_forward_hook(partial(_give_logits, output=output)))
    return hooks


def own_type(network: nn.Module) -> torch.dtype:
    tensors = chain(network.parameters(), network.buffers())
    types = (tensor.dtype for tensor in tensors if tensor.is_floating_point())
    return next(types, torch.float32)


def why_no_classifier(network: nn.Module) -> str | None:
    """Return the sign by which a network shows that it has no classifier, if any."""
    if getattr(network, "num_classes", None) == 0:
        return "num_classes is 0"
    name, last = [*network.named_modules()][-1]
    # An entry of a list takes the name of the list.
    called = [part for part in name.split(".") if not part.isdecimal()]
    empty = isinstance(last, nn.Identity) and not HEADS.isdisjoint(called[-1:])
    return f"{name} is nn.Identity" if empty else None


def widened(tensor: Tensor) -> Tensor:
    """Return a tensor of 32 bits or more, so that measures are not rounded further."""
    return tensor.float() if tensor.itemsize < 4 else tensor


def _in_own_type(network: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
    kind = own_type(network)
    return tuple(
        each.to(kind) if isinstance(each, Tensor) and each.is_floating_point() else each
        for each in args
    )


def _give_logits(network: nn.Module, args: Any, returned: Any, *, output: Output) -> Tensor:
    return widened(logits_of(returned, output))


def logits_of(returned: Any, output: Output = None) -> Tensor:
    """Return `output` of a network's result, or else its `logits` or its only tensor."""
    named = _entries(returned)
    if output is not None:
        name = str(output)
        if name not in named:
            raise VitscopeError(
                f"output: the network returned a {type(returned).__name__} without a tensor "
                f"{quoted(name)}; there are {', '.join(named) or 'none that has a name'}."
                f"{nearest(name, named)}"
            )
        return named[name]
    if isinstance(returned, Tensor):
        return returned
    if "logits" in named:
        return named["logits"]
    tensors = tensors_of(returned)
    if len(tensors) == 1:
        return tensors[0]
    raise VitscopeError(
        f"The network returned a {type(returned).__name__} of {len(tensors)} tensors, allowed: the "
        f"logits alone, or an object or mapping that holds them as 'logits'.{_advise(named)}"
    )


def tensors_of(returned: Any) -> list[Tensor]:
    held = returned if isinstance(returned, Tensor) else [*_values(returned).values()]
    return [leaf for leaf in tree_leaves(held) if isinstance(leaf, Tensor)]


def ends_of(returned: Any) -> list[Tensor]:
    """Return the tensors that a network's computation ends in: its logits, if they are named."""
    named = _entries(returned)
    return [named["logits"]] if "logits" in named else tensors_of(returned)


def _values(returned: Any) -> Mapping[Any, Any]:
    if isinstance(returned, Mapping):
        return returned
    if isinstance(returned, tuple | list):
        names = getattr(returned, "_fields", range(len(returned)))
        return dict(zip(names, returned, strict=True))
    return getattr(returned, "__dict__", {})


def _entries(returned: Any) -> dict[str, Tensor]:
    if isinstance(returned, Tensor):
        return {}
    named = _values(returned).items()
    return {str(name): value for name, value in named if isinstance(value, Tensor)}


def _advise(named: Mapping[str, Tensor]) -> str:
    if not named:
        return ""
    shapes = (f"{name} ({'x'.join(map(str, each.shape))})" for name, each in named.items())
    # Logits have two dimensions.
    name = next((name for name, each in named.items() if each.ndim == 2), next(iter(named)))
    value = name if name.isdecimal() else f'"{name}"'
    return (
        f" It holds {', '.join(shapes)}: say which the logits are, as `output: {name}` with the "
        f"model in a study, or look(..., output={value})."
    )


def count_images(network: nn.Module, counted: Callable[[int], object]) -> RemovableHandle:
    """Call `counted` with the number of images in each batch that a network is given."""

    def count(module: nn.Module, args: Any, kwargs: Any) -> None:
        images = next((each for each in (*args, *kwargs.values()) if hasattr(each, "shape")), ())
        counted(len(images))

    return network.register_forward_pre_hook(count, with_kwargs=True)


@contextmanager
def plain_attention(model: nn.Module) -> Iterator[None]:
    """Switch off fused attention: its backward pass is slow on a CPU, and itself has none."""
    fused = [module for module in model.modules() if getattr(module, "fused_attn", False)]
    for module in fused:
        module.fused_attn = False  # type: ignore[assignment]
    try:
        yield
    finally:
        for module in fused:
            module.fused_attn = True  # type: ignore[assignment]


@contextmanager
def without_fast_path() -> Iterator[None]:
    """Switch off `nn.TransformerEncoder`'s operation for a whole block, which hides the stream."""
    enabled = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(enabled)


# A study describes a network by `family`, `arch`, `classes` and `image_size`, and by the length of
# `mean`, the number of its channels.
Network = Mapping[str, Any]


def empty_network(network: Network) -> nn.Module:
    without_values = find_family(network["family"]).without_values
    device = torch.device("meta" if without_values else "cpu")
    with torch.random.fork_rng(devices=()), device:
        return _uncompiled(build_network(network))


def drawn_network(network: Network, seed: int = 0) -> nn.Module:
    """Build the network of a study's model with its own values, drawn the same way every time."""
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        return _uncompiled(build_network(network))


def _uncompiled(model: nn.Module) -> nn.Module:
    """Let a network that compiles parts of itself run step by step until the job ends."""
    if is_compiled(model):
        torch.compiler.set_stance("force_eager")
    return model


def parameter_names(network: Network) -> list[str]:
    """Return the names of the weights that training changes, which excludes buffers."""
    return [name for name, _ in empty_network(network).named_parameters()]


def fill(model: nn.Module, state_dict: Mapping[str, Tensor]) -> nn.Module:
    """Load the weights of a model, and return it ready for inference."""
    if any(tensor.is_meta for tensor in chain(model.parameters(), model.buffers())):
        model.to_empty(device="cpu")
        for module in model.modules():
            compute = getattr(module, "init_non_persistent_buffers", None)
            stored_nowhere = (module._buffers[name] for name in module._non_persistent_buffers_set)
            if compute is not None:
                compute()
            elif any(buffer is not None for buffer in stored_nowhere):
                raise NotImplementedError(
                    f"{type(module).__name__} holds buffers that no checkpoint stores; "
                    "give it a method init_non_persistent_buffers that computes them."
                )
    model.load_state_dict(state_dict)
    return model.eval()


@contextmanager
def uncompiled() -> Iterator[None]:
    """Run compiled code step by step in the block, so that every operation can be seen."""
    # FlexAttention, which compiles itself, fails under a dispatch mode, as compiled networks do.
    with torch.compiler.set_stance("force_eager"):
        yield


def original(network: nn.Module) -> nn.Module:
    return getattr(network, "_orig_mod", network)


def is_compiled(network: nn.Module) -> bool:
    return any(
        module._compiled_call_impl is not None or hasattr(module, "_orig_mod")
        for module in network.modules()
    )
