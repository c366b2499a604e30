"""Remember what operations on shapes return: torch computes most of it by slow Python."""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode

# Forget all once so many results are known.
MOST = 10_000
Key = tuple[Hashable, ...]
# What tensors of a result have, and whether it is one tensor or a series of this type.
Known = tuple[type, list[tuple[torch.Size, tuple[int, ...], torch.dtype]]]

_known: dict[Key, Known] = {}


class KnownShapes(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Gives an operation on the meta device the result that it had for tensors of equal shapes.

    Enter it before other modes, which see each operation as without it. What returns or changes
    memory of its operands is left to torch, and so is whatever has values.
    """

    supports_higher_order_operators = True

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        given: list[Tensor] = []
        key = _key((*args, *kwargs.items()), given) if isinstance(func, OpOverload) else None
        if key is None or not given or func._schema.is_mutable:
            return func(*args, **kwargs)
        key = func, torch.get_default_dtype(), key
        if key in _known:
            kind, tensors = _known[key]
            made = [
                torch.empty_strided(shape, strides, dtype=dtype, device="meta")
                for shape, strides, dtype in tensors
            ]
            return made[0] if kind is Tensor else kind(made)
        result = func(*args, **kwargs)
        returned = (result,) if isinstance(result, Tensor) else result
        if _are_new(returned, given):
            if len(_known) >= MOST:
                _known.clear()
            found = [(each.shape, each.stride(), each.dtype) for each in returned]
            _known[key] = Tensor if isinstance(result, Tensor) else type(result), found
        return result


def _key(arguments: Iterable[Any], given: list[Tensor]) -> Key | None:
    """Return what the shapes of a result depend on; append the tensors among the arguments.

    None, if they depend on values, or on what is not known.
    """
    parts: list[Hashable] = []
    for each in arguments:
        if isinstance(each, Tensor):
            if not _is_plain(each):
                return None
            given.append(each)
            parts.append((each.shape, each.stride(), each.dtype))
        elif isinstance(each, tuple | list):
            inner = _key(each, given)
            if inner is None:
                return None
            parts.append(inner)
        elif each is None or isinstance(each, _PLAIN):
            # 1, 1.0 and True are equal, and not the same argument.
            parts.append((type(each), each))
        else:
            return None
    return tuple(parts)


_PLAIN = int, float, str, torch.dtype, torch.device, torch.layout, torch.memory_format


def _is_plain(tensor: Tensor) -> bool:
    plain = type(tensor) in (Tensor, nn.Parameter) and tensor.layout is torch.strided
    return plain and tensor.is_meta and not tensor.is_conj() and not tensor.is_neg()


def _are_new(returned: Any, given: Iterable[Tensor]) -> bool:
    """Tell whether all that an operation returned are tensors with memory of their own."""
    if type(returned) not in (tuple, list) or not returned:
        return False
    if not all(isinstance(each, Tensor) and _is_plain(each) for each in returned):
        return False
    memory = {each.untyped_storage()._cdata for each in returned}
    theirs = {each.untyped_storage()._cdata for each in given}
    return len(memory) == len(returned) and not memory & theirs
