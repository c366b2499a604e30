"""Classify torch's operations by name, and intercept every operation that a network runs."""

from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import cache, partial
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch._C import DispatchKey
from torch._ops import HigherOrderOperator, OpOverload
from torch.jit import ScriptModule
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from vitscope.errors import VitscopeError, quoted
from vitscope.networks.building.networks import uncompiled
from vitscope.networks.finding.cut_points import Alike, OperationId
from vitscope.networks.finding.leaves import leaves, map_leaves


def _split_names(text: str) -> frozenset[str]:
    return frozenset(text.split())


ADDITIONS = _split_names("add addcmul")
ACTIVATIONS = _split_names(
    """relu gelu silu hardswish hardtanh hardsigmoid leaky_relu elu celu mish sigmoid tanh softplus
    _prelu_kernel clamp clamp_min"""
)
BATCH_NORMALIZATIONS = _split_names(
    "native_batch_norm cudnn_batch_norm _native_batch_norm_legit_no_training"
)
NORMALIZATIONS = BATCH_NORMALIZATIONS | _split_names("native_layer_norm native_group_norm")
STRIDED_POOLINGS = _split_names("avg_pool2d max_pool2d_with_indices")
ADAPTIVE_POOLINGS = _split_names("_adaptive_avg_pool2d adaptive_max_pool2d")
POOLINGS = STRIDED_POOLINGS | ADAPTIVE_POOLINGS
CONVOLUTIONS = _split_names("convolution _convolution")
RESIZINGS = _split_names(
    """upsample_bilinear2d upsample_nearest2d upsample_bicubic2d _upsample_bilinear2d_aa
    _upsample_bicubic2d_aa _upsample_nearest_exact2d"""
)
MAPS = CONVOLUTIONS | POOLINGS | RESIZINGS
UNFOLDING = _split_names("im2col")
PRODUCTS = _split_names("mm addmm bmm baddbmm")
REDUCTIONS = _split_names("mean sum amax amin")
# These measure how much values vary, or how large they are, as norms do.
SPREADS = _split_names("var var_mean std linalg_vector_norm")
# These do the same as `reshape` on a tensor that is contiguous in memory.
VIEWS = _split_names("view _unsafe_view _reshape_alias")
COPIES = _split_names("_to_copy clone alias detach")
# These move values without computing anything.
MOVES = (
    VIEWS
    | COPIES
    | _split_names(
        """permute transpose t unsqueeze squeeze expand slice select split split_with_sizes unbind
        cat stack roll flip as_strided constant_pad_nd index_select repeat unfold pixel_shuffle
        pixel_unshuffle index gather"""
    )
)
# These put several tensors into one, whose parts a later operation may sum up.
STACKS = _split_names("stack cat")
# These read values at given indices.
CHOICES = _split_names("index index_select gather")
# These put values at given places.
SCATTERS = _split_names("index_put scatter index_copy masked_scatter grid_sampler_2d grid_sampler")
# These move values along a dimension by what they are.
SORTS = _split_names("sort topk")
PARTS_OF_NORMS = (
    MOVES
    | NORMALIZATIONS
    | REDUCTIONS
    | SPREADS
    | _split_names(
        "pow mul div sub add sqrt rsqrt reciprocal clamp clamp_min _fused_rms_norm square"
    )
)
# These compute each value from the results at earlier positions.
CUMULATIONS = _split_names("cumsum cumprod logcumsumexp _cumsum cummax")
# These use the shape of a tensor but not its values.
OF_SHAPES = _split_names(
    """zeros_like ones_like empty_like full_like new_zeros new_ones new_empty new_full
    new_empty_strided"""
)
SOFTMAXES = _split_names("_softmax _safe_softmax")
FLEX_ATTENTION = "flex_attention"
_COMPOSITE = DispatchKey.CompositeImplicitAutograd


def operation_name(function: Any) -> str:
    """Return the name of an operation, without the underscore of an in-place version."""
    if isinstance(function, HigherOrderOperator):
        return str(function.name())  # type: ignore[no-untyped-call]
    name: str = function.overloadpacket.__name__
    return name.rstrip("_")


def refuse_unknown_operator(function: Any) -> None:
    """Refuse an operator that runs functions passed to it, except FlexAttention.

    The operations in these functions cannot be seen.
    """
    name = operation_name(function)
    if isinstance(function, HigherOrderOperator) and name != FLEX_ATTENTION:
        raise VitscopeError(
            f"the network uses torch's operator {quoted(name)}, which runs functions of its own: "
            f"in it no cut points are found; use plain Python in its place."
        )


def is_mutable(function: Any) -> bool:
    return not isinstance(function, HigherOrderOperator) and function._schema.is_mutable


@cache
def is_composite(function: Any) -> bool:
    """Tell whether an operation consists of others, which torch runs in its place."""
    if not isinstance(function, OpOverload):
        return False
    return torch._C._dispatch_has_kernel_for_dispatch_key(function._name, _COMPOSITE)


def is_fused_attention(name: str) -> bool:
    return "scaled_dot_product" in name or name == FLEX_ATTENTION


def is_fourier(name: str) -> bool:
    return name.startswith("_fft")


def multiplies(name: str) -> bool:
    return name in PRODUCTS | CONVOLUTIONS | POOLINGS or is_fused_attention(name)


def inside(module: str, outer: str) -> bool:
    return outer == "" or module == outer or module.startswith(outer + ".")


Args = tuple[Any, ...]
Kwargs = Mapping[str, Any]


class OperationMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Intercepts every operation that runs, and runs compiled code eagerly to see all of them.

    In inference mode, torch dispatches composite operations such as `linear` whole, and otherwise
    in parts. Here they are always taken apart, so that passes in both modes show the same
    operations.
    """

    # Accept operations that take functions, such as FlexAttention, which torch otherwise refuses.
    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        # There is one stack for each time that the mode was entered.
        self._blocks: list[ExitStack] = []

    def __enter__(self) -> Self:
        self._blocks.append(ExitStack())
        self._blocks[-1].enter_context(uncompiled())
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        self._blocks.pop().close()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Args = (), kwargs: Kwargs | None = None
    ) -> Any:
        if not is_composite(func):
            return self.run(func, *self._drop_values(args, kwargs or {}))
        super().__enter__()  # type: ignore[no-untyped-call]
        try:
            # Use the kernel that torch itself runs: `decompose` may use one in Python instead.
            return func._op_dk(_COMPOSITE, *args, **(kwargs or {}))
        finally:
            super().__exit__(None, None, None)  # type: ignore[no-untyped-call]

    def _drop_values(self, args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs]:
        """If any tensor argument is on the meta device, move all others there."""
        empty = [leaf.is_meta for leaf in leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        if not any(empty) or all(empty):
            return args, kwargs

        def drop_values_of_leaf(leaf: Any) -> Any:
            made = isinstance(leaf, Tensor) and not leaf.is_meta and leaf.ndim > 0
            return self.empty(leaf) if made else leaf

        taken: tuple[Args, Kwargs] = map_leaves(drop_values_of_leaf, (args, kwargs))
        return taken

    def empty(self, tensor: Tensor) -> Tensor:
        return tensor.to("meta")

    @abstractmethod
    def run(self, function: Any, args: Args, kwargs: Kwargs) -> Any: ...


class ModuleMode(OperationMode):  # type: ignore[no-untyped-call]
    """Tracks which module of a network runs in a pass, and counts the operations of each module."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.counts: Counter[tuple[str, Alike]] = Counter()
        self._images = 1
        self._running = [""]

    def __enter__(self) -> Self:
        super().__enter__()
        remove_later = self._blocks[-1].callback
        for name, module in self.model.named_modules():
            if isinstance(module, ScriptModule):
                continue
            enter, leave = partial(self._enter_module, name), partial(self._leave_module, name)
            hook = module.register_forward_pre_hook(enter, with_kwargs=True)
            remove_later(hook.remove)
            remove_later(module.register_forward_hook(leave).remove)
        return self

    def begin(self, images: int) -> None:
        self._images = images
        self._running = [""]
        self.counts.clear()

    @property
    def module(self) -> str:
        return self._running[-1]

    def count(self, name: str, tensor: Tensor) -> OperationId:
        key = alike(name, tensor, self._images)
        self.counts[self.module, key] += 1
        return self.last_id(key)

    def last_id(self, key: Alike) -> OperationId:
        """Return the id of the last operation of this kind that was counted in the module."""
        return OperationId(self.module, key, self.counts[self.module, key] - 1)

    def _enter_module(self, name: str, module: nn.Module, args: Any, kwargs: Any) -> None:
        if module is self.model:
            images = first_tensor((args, kwargs))
            self.begin(1 if images is None else len(images))
        self._running.append(name)

    def _leave_module(self, name: str, module: nn.Module, args: Any, output: Any) -> None:
        self._running.pop()


def another_path(what: str, cannot: str = "read") -> VitscopeError:
    return VitscopeError(
        f"The network took another path than the one that was recorded: it {what}. Networks that "
        f"choose their path by the images cannot be {cannot}."
    )


def weighs(name: str) -> bool:
    return name in SOFTMAXES or is_fused_attention(name)


def alike(name: str, tensor: Tensor, images: int) -> Alike:
    if weighs(name):
        # Which operation computes attention, and what it returns, depends on the device.
        return "attention", 0, 0
    return name, tensor.ndim, tensor.numel() // images


def is_bias(name: str, args: Sequence[Any]) -> bool:
    """Tell whether an operation adds a bias, which on other devices is part of a product."""
    return name == "add" and any(isinstance(arg, Tensor) and arg.ndim < 2 for arg in args)


def first_tensor(values: Any) -> Tensor | None:
    return next((leaf for leaf in tree_leaves(values) if isinstance(leaf, Tensor)), None)
