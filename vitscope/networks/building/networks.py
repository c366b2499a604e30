"""Build networks as a study describes them, load weights, and adapt inputs and outputs."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from importlib import import_module
from itertools import chain
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.jit import ScriptModule
from torch.nn.parameter import is_lazy
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves
from torch.utils.hooks import RemovableHandle

from vitscope.errors import VitscopeError, nearest, quoted
from vitscope.image_size import ImageSize, height_and_width
from vitscope.networks.building.family import WantedNetwork, module_of, refuse_unknown_family

# The name, or the index, of the logits among a network's output tensors.
Output = int | str | None
# Networks give these names to the module that computes their logits.
HEADS = frozenset({"head", "heads", "fc", "classifier", "last_linear"})


def adapt_input_and_output(
    network: nn.Module, *, logits: bool, output: Output = None
) -> list[RemovableHandle]:
    """Make a network cast images to its own dtype and, if asked, return its logits or `output`."""
    hooks = [network.register_forward_pre_hook(_cast_to_network_type)]
    if logits or output is not None:
        hooks.append(network.register_forward_hook(partial(_give_logits, output=output)))
    return hooks


def own_type(network: nn.Module) -> torch.dtype:
    tensors = chain(network.parameters(), network.buffers())
    types = (tensor.dtype for tensor in tensors if tensor.is_floating_point())
    return next(types, torch.float32)


def refuse_unreadable_network(network: nn.Module) -> None:
    """Refuse a network that a pass would damage, or that shows no modules while it runs."""
    if isinstance(network, ScriptModule):
        raise VitscopeError(
            "the network is scripted by torch.jit, which shows no modules while it runs: give the "
            "network that was scripted."
        )
    lazy = [
        name.rpartition(".")[0]
        for name, tensor in chain(network.named_parameters(), network.named_buffers())
        if is_lazy(tensor)
    ]
    if lazy:
        name = quoted(lazy[0] or type(network).__name__)
        raise VitscopeError(
            f"the module {name} of the network is lazy, and has no weights before its first pass: "
            f"run the network once on images."
        )


def same_bytes(one: Tensor, other: Tensor) -> bool:
    """Tell whether two tensors hold the same bytes, so that NaN equals NaN in any type."""
    if one.shape != other.shape:
        return False
    # The real part of complex numbers has gaps between its numbers, which bytes cannot be.
    dense = (each.detach().resolve_conj().resolve_neg().contiguous() for each in (one, other))
    return torch.equal(*(each.reshape(-1).view(torch.uint8) for each in dense))


def why_built_without_classifier(network: nn.Module) -> str | None:
    """Return why a network seems to have no classifier, such as "num_classes is 0"; else None."""
    if getattr(network, "num_classes", None) == 0:
        return "num_classes is 0"
    name, last = [*network.named_modules()][-1]
    # An index in an nn.ModuleList is no name: use the name of the list.
    called = [part for part in name.split(".") if not part.isdecimal()]
    empty = isinstance(last, nn.Identity) and not HEADS.isdisjoint(called[-1:])
    return f"{name} is nn.Identity" if empty else None


def widened(tensor: Tensor) -> Tensor:
    """Return a tensor with at least 32 bits per value, so that measures are not rounded further."""
    return tensor.float() if tensor.itemsize < 4 else tensor


def _cast_to_network_type(network: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
    kind = own_type(network)
    return tuple(
        each.to(kind) if isinstance(each, Tensor) and each.is_floating_point() else each
        for each in args
    )


def _give_logits(network: nn.Module, args: Any, returned: Any, *, output: Output) -> Tensor:
    return widened(logits_of_network(returned, output))


def logits_of_network(returned: Any, output: Output = None) -> Tensor:
    """Return the tensor `output` of a network's result; by default `logits`, or its only tensor."""
    named = _named_tensors(returned)
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
        f"logits alone, or an object or mapping that holds them as 'logits'."
        f"{_advise_network_output(named)}"
    )


def tensors_of(returned: Any) -> list[Tensor]:
    held = returned if isinstance(returned, Tensor) else [*_named_values(returned).values()]
    return [leaf for leaf in tree_leaves(held) if isinstance(leaf, Tensor)]


def ends_of(returned: Any) -> list[Tensor]:
    """Return a network's final tensors: the one named `logits`, or else all that it returns."""
    named = _named_tensors(returned)
    return [named["logits"]] if "logits" in named else tensors_of(returned)


def _named_values(returned: Any) -> Mapping[Any, Any]:
    if isinstance(returned, Mapping):
        return returned
    if isinstance(returned, tuple | list):
        names = getattr(returned, "_fields", range(len(returned)))
        return dict(zip(names, returned, strict=True))
    return getattr(returned, "__dict__", {})


def _named_tensors(returned: Any) -> dict[str, Tensor]:
    if isinstance(returned, Tensor):
        return {}
    named = _named_values(returned).items()
    return {str(name): value for name, value in named if isinstance(value, Tensor)}


def _advise_network_output(named: Mapping[str, Tensor]) -> str:
    if not named:
        return ""
    shapes = (f"{name} ({'x'.join(map(str, each.shape))})" for name, each in named.items())
    # Prefer a tensor with two dimensions, as logits have.
    name = next((name for name, each in named.items() if each.ndim == 2), next(iter(named)))
    value = name if name.isdecimal() else f'"{name}"'
    return (
        f" It holds {', '.join(shapes)}: say which the logits are, as `output: {name}` with the "
        f"model in a study, or look(..., output={value})."
    )


def count_images_into_network(
    network: nn.Module, counted: Callable[[int], object]
) -> RemovableHandle:
    """Call `counted` with the number of images in each batch that a network is given."""

    def count_batch(module: nn.Module, args: Any, kwargs: Any) -> None:
        images = next((each for each in (*args, *kwargs.values()) if hasattr(each, "shape")), ())
        counted(len(images))

    return network.register_forward_pre_hook(count_batch, with_kwargs=True)


@contextmanager
def plain_attention(model: nn.Module) -> Iterator[None]:
    """Switch off fused attention: its backward pass is slow on a CPU, and not differentiable."""
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
    """Switch off the fused blocks of `nn.TransformerEncoder`, which hide the residual stream."""
    enabled = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(enabled)


class Family(NamedTuple):
    """Describes a kind of network: the function that builds a network of this kind.

    `without_values` says whether the function works on the meta device.
    """

    network: Callable[[WantedNetwork], nn.Module]
    without_values: bool

    def build(
        self,
        arch: Mapping[str, Any],
        num_classes: int | None,
        image_size: ImageSize,
        channels: int = 3,
        output: int | str | None = None,
    ) -> nn.Module:
        """Build the network that `arch` describes; without `num_classes`, it has no classifier."""
        try:
            network = self.network(WantedNetwork(arch, num_classes or 0, image_size, channels))
        except VitscopeError:
            raise
        except Exception as error:  # Networks refuse dimensions with errors of many types.
            reason = str(error).rstrip(".") or type(error).__name__
            classes, (height, width) = num_classes or "no", height_and_width(image_size)
            hint = "" if height == width else " (some networks take squares alone)"
            raise VitscopeError(
                f"No network can be built from arch {dict(arch)} for {classes} classes and "
                f"{height}x{width} images{hint}: {reason}."
            ) from error
        if num_classes and (why := why_built_without_classifier(network)):
            raise VitscopeError(
                f"The network has no classifier ({why}), and the study says {num_classes} classes: "
                f"give `classes: null` to the model."
            )
        adapt_input_and_output(network, logits=bool(num_classes), output=output)
        return network


def find_family(name: str) -> Family:
    refuse_unknown_family(name)
    module = import_module(module_of(name))
    return Family(module.network, not getattr(module, "WITH_VALUES", False))


# A study's description of a network: `family`, `arch`, `classes`, `image_size`, and `mean`, whose
# length is the number of channels.
NetworkEntry = Mapping[str, Any]


def build_family_network(network: NetworkEntry) -> nn.Module:
    return find_family(network["family"]).build(
        network["arch"],
        network["classes"],
        network["image_size"],
        len(network["mean"]),
        network.get("output"),
    )


def empty_network(network: NetworkEntry) -> nn.Module:
    """Build a network to inspect, on the meta device (without values) if its family allows that."""
    without_values = find_family(network["family"]).without_values
    device = torch.device("meta" if without_values else "cpu")
    with torch.random.fork_rng(devices=()), device:
        return _run_eagerly_if_compiled(build_family_network(network))


class _Undrawn(TorchFunctionMode):
    """Skips the random initialization of parameters, which takes seconds in large networks."""

    DRAWING = (Tensor.normal_, Tensor.uniform_, Tensor.erfinv_)

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        of_init = getattr(func, "__module__", None) == nn.init.__name__
        drawn = args[0] if args else kwargs.get("tensor")
        if (of_init or func in self.DRAWING) and isinstance(drawn, nn.Parameter):
            return drawn
        return func(*args, **kwargs)


def uninitialized_network(network: NetworkEntry) -> nn.Module:
    """Build a network to load weights into, without initializing its parameters.

    Do not use the meta device for that, because it would import the compiler of torch.
    """
    undrawn = find_family(network["family"]).without_values
    with torch.random.fork_rng(devices=()), _Undrawn() if undrawn else nullcontext():
        return _run_eagerly_if_compiled(build_family_network(network))


def drawn_network(network: NetworkEntry, seed: int = 0) -> nn.Module:
    """Build a network with its random initial values, drawn with `seed`."""
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        return _run_eagerly_if_compiled(build_family_network(network))


def _run_eagerly_if_compiled(model: nn.Module) -> nn.Module:
    """If parts of a network are compiled, switch torch.compile off until the job ends."""
    if is_compiled(model):
        torch.compiler.set_stance("force_eager")
    return model


def parameter_names(network: NetworkEntry) -> list[str]:
    """Return the names of a network's parameters, without its buffers."""
    return [name for name, _ in empty_network(network).named_parameters()]


def fill(model: nn.Module, state_dict: Mapping[str, Tensor]) -> nn.Module:
    """Load weights into a model, and return the model in evaluation mode."""
    model.load_state_dict(state_dict)
    return model.eval()


@contextmanager
def uncompiled() -> Iterator[None]:
    """Run compiled code eagerly in the block, so that every operation can be observed."""
    # FlexAttention, which compiles itself, fails under a dispatch mode, as compiled networks do.
    with torch.compiler.set_stance("force_eager"):
        yield


def unwrap_compiled(network: nn.Module) -> nn.Module:
    return getattr(network, "_orig_mod", network)


def is_compiled(network: nn.Module) -> bool:
    return any(
        module._compiled_call_impl is not None or hasattr(module, "_orig_mod")
        for module in network.modules()
    )
