"""What the operations of networks are, by the names that torch gives them.

Operations that torch makes of others, such as `linear`, have none here: a dispatch mode sees those.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import torch
from torch._C import DispatchKey
from torch._ops import HigherOrderOperator, OpOverload

from vitscope.errors import VitscopeError, quoted


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


ADDITIONS = _names("add addcmul")
ACTIVATIONS = _names(
    """relu gelu silu hardswish hardtanh hardsigmoid leaky_relu elu celu mish sigmoid tanh softplus
    _prelu_kernel clamp clamp_min"""
)
BATCH_NORMALIZATIONS = _names(
    "native_batch_norm cudnn_batch_norm _native_batch_norm_legit_no_training"
)
NORMALIZATIONS = BATCH_NORMALIZATIONS | _names("native_layer_norm native_group_norm")
STRIDED_POOLINGS = _names("avg_pool2d max_pool2d_with_indices")
POOLINGS = STRIDED_POOLINGS | _names("_adaptive_avg_pool2d adaptive_max_pool2d")
CONVOLUTIONS = _names("convolution _convolution")
RESIZINGS = _names(
    """upsample_bilinear2d upsample_nearest2d upsample_bicubic2d _upsample_bilinear2d_aa
    _upsample_bicubic2d_aa _upsample_nearest_exact2d"""
)
# These give a new map.
MAPS = CONVOLUTIONS | POOLINGS | RESIZINGS
# Cuts patches out of maps.
UNFOLDING = _names("im2col")
PRODUCTS = _names("mm addmm bmm baddbmm")
REDUCTIONS = _names("mean sum amax amin")
STATISTICS = REDUCTIONS | _names("var var_mean std linalg_vector_norm")
# What these do to a tensor that lies in memory as it should, `reshape` does to any.
VIEWS = _names("view _unsafe_view _reshape_alias")
COPIES = _names("_to_copy clone alias detach")
# These move values and compute nothing.
MOVES = (
    VIEWS
    | COPIES
    | _names(
        """permute transpose t unsqueeze squeeze expand slice select split split_with_sizes unbind
        cat stack roll flip as_strided constant_pad_nd index_select repeat unfold pixel_shuffle
        pixel_unshuffle index gather"""
    )
)
# What these put together may be summed up again.
STACKS = _names("stack cat")
# These take values by their numbers, and these put values there.
CHOICES = _names("index index_select gather")
SCATTERS = _names("index_put scatter index_copy masked_scatter grid_sampler_2d grid_sampler")
# These move values by what the values are: where to cannot be told.
SORTS = _names("sort")
# What norms are made of.
PARTS_OF_NORMS = (
    MOVES
    | NORMALIZATIONS
    | REDUCTIONS
    | _names(
        """pow mul div sub add sqrt rsqrt reciprocal var var_mean std linalg_vector_norm clamp
        clamp_min _fused_rms_norm square"""
    )
)
# These compute a value along positions from what the same made of those before.
CUMULATIONS = _names("cumsum cumprod logcumsumexp _cumsum cummax")
# These take the shape of a tensor and not its values.
OF_SHAPES = _names(
    """zeros_like ones_like empty_like full_like new_zeros new_ones new_empty new_full
    new_empty_strided"""
)
SOFTMAXES = _names("_softmax _safe_softmax")
FLEX_ATTENTION = "flex_attention"
_COMPOSITE = DispatchKey.CompositeImplicitAutograd


def plain_name(function: Any) -> str:
    """Return the name of an operation, the same whether it works in place or not."""
    if isinstance(function, HigherOrderOperator):
        return str(function.name())  # type: ignore[no-untyped-call]
    name: str = function.overloadpacket.__name__
    return name.rstrip("_")


def refuse_unknown(function: Any) -> None:
    """Refuse an operation that runs functions: what these do is not seen."""
    name = plain_name(function)
    if isinstance(function, HigherOrderOperator) and name != FLEX_ATTENTION:
        raise VitscopeError(
            f"the network uses torch's operator {quoted(name)}, which runs functions of its own: "
            f"in it no cut points are found; use plain Python in its place."
        )


def is_mutable(function: Any) -> bool:
    """Tell whether an operation changes what it is given."""
    return not isinstance(function, HigherOrderOperator) and function._schema.is_mutable


@cache
def is_composite(function: Any) -> bool:
    """Tell whether an operation is made of others, which torch runs in its place."""
    if not isinstance(function, OpOverload):
        return False
    return torch._C._dispatch_has_kernel_for_dispatch_key(function._name, _COMPOSITE)


def run_composite(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Run what a composite operation is made of.

    As torch does without gradients; its `decompose` may take another way, written in Python.
    """
    return function._op_dk(_COMPOSITE, *args, **kwargs)


def is_fused_attention(name: str) -> bool:
    """Tell whether an operation does all of attention, from queries, keys and values."""
    return "scaled_dot_product" in name or name == FLEX_ATTENTION


def is_fourier(name: str) -> bool:
    """Tell whether an operation is a Fourier transform, which mixes all positions."""
    return name.startswith("_fft")


def multiplies(name: str) -> bool:
    """Tell whether an operation multiplies by a matrix, pools or attends."""
    return name in PRODUCTS | CONVOLUTIONS | POOLINGS or is_fused_attention(name)


def inside(module: str, outer: str) -> bool:
    """Tell whether a module is another, or a part of it."""
    return outer == "" or module == outer or module.startswith(outer + ".")
