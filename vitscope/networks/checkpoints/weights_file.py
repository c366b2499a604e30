"""Write the weights of a network as a safetensors file, whose bytes follow from what is in it."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor

from vitscope.errors import VitscopeError
from vitscope.files.tensors import DTYPES, TensorWriter

_FILE_DTYPES = {
    torch.float32: "F32",
    torch.float64: "F64",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}


def write_weights(path: Path, weights: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write a state dict; the same weights and metadata always give the same bytes."""
    # The writer of the safetensors library orders the metadata anew in each process.
    tensors = {
        name: (_dtype(name, tensor), tuple(tensor.shape)) for name, tensor in weights.items()
    }
    with TensorWriter(path, tensors, metadata) as writer:
        for name, tensor in weights.items():
            writer.write(name, 0, _array(name, tensor))


def sha256_of(weights: Mapping[str, Tensor]) -> str:
    """Return a digest of a state dict: of its names, types, shapes and values."""
    digest = hashlib.sha256()
    for name, tensor in weights.items():
        digest.update(f"{name} {_dtype(name, tensor)} {tuple(tensor.shape)}\n".encode())
        digest.update(_array(name, tensor).tobytes())
    return digest.hexdigest()


def _dtype(name: str, tensor: Tensor) -> str:
    if tensor.dtype not in _FILE_DTYPES:
        raise VitscopeError(
            f"The network holds {name} as {tensor.dtype}, which is not measured: build it in "
            f"float32."
        )
    return _FILE_DTYPES[tensor.dtype]


def _array(name: str, tensor: Tensor) -> npt.NDArray[Any]:
    tensor = tensor.contiguous()
    raw = tensor.view(torch.uint16) if tensor.dtype is torch.bfloat16 else tensor
    array: npt.NDArray[Any] = raw.numpy()
    return array.astype(DTYPES[_dtype(name, tensor)], copy=False)
