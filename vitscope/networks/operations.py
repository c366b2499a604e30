"""What the operations of networks are, by the names that torch gives them."""

from typing import Any

ADDITIONS = frozenset({"add", "addcmul"})
ACTIVATIONS = frozenset(
    "relu relu6 gelu silu hardswish hardtanh hardsigmoid leaky_relu elu selu celu mish sigmoid tanh "
    "softplus prelu _prelu_kernel clamp clamp_min".split()
)
NORMALIZATIONS = frozenset(
    "native_layer_norm layer_norm native_batch_norm cudnn_batch_norm batch_norm "
    "_native_batch_norm_legit_no_training native_group_norm rms_norm".split()
)
POOLINGS = frozenset(
    "avg_pool2d max_pool2d max_pool2d_with_indices adaptive_avg_pool2d _adaptive_avg_pool2d "
    "adaptive_max_pool2d".split()
)
CONVOLUTIONS = frozenset({"convolution", "_convolution", "conv2d"})
RESIZINGS = frozenset(
    "upsample_bilinear2d upsample_nearest2d upsample_bicubic2d _upsample_bilinear2d_aa "
    "_upsample_bicubic2d_aa _upsample_nearest_exact2d".split()
)
# These give a new map, which fills the image.
MAPS = CONVOLUTIONS | POOLINGS | RESIZINGS
PRODUCTS = frozenset("mm addmm bmm baddbmm matmul linear".split())
REDUCTIONS = frozenset("mean sum amax amin".split())
# What these do to a tensor that lies in memory as it should, `reshape` does to any.
VIEWS = frozenset("view _unsafe_view _reshape_alias".split())
COPIES = frozenset("_to_copy clone contiguous alias detach".split())
# These move values and compute nothing.
MOVES = (
    VIEWS
    | COPIES
    | frozenset(
        "reshape permute transpose t unsqueeze squeeze expand slice select split split_with_sizes "
        "chunk unbind cat stack roll flip flatten unflatten as_strided constant_pad_nd "
        "index_select movedim swapaxes repeat narrow unfold pixel_shuffle pixel_unshuffle index "
        "gather".split()
    )
)
FUSED_ATTENTION = "scaled_dot_product"


def plain_name(function: Any) -> str:
    """Return the name of an operation, the same whether it works in place or not."""
    name: str = function.overloadpacket.__name__
    return name.rstrip("_")


def multiplies(name: str) -> bool:
    """Tell whether an operation multiplies by a matrix, pools or attends."""
    return name in PRODUCTS | CONVOLUTIONS | POOLINGS or FUSED_ATTENTION in name


def inside(module: str, outer: str) -> bool:
    """Tell whether a module is another, or a part of it."""
    return outer == "" or module == outer or module.startswith(outer + ".")
