"""Write the weights of a network as a safetensors file, whose bytes follow from what is in it."""

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from vitscope.files.tensors import DTYPES, TensorWriter

_FILE_DTYPES = {
    torch.float32: "F32",
    torch.float64: "F64",
    torch.float16: "F16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}


def write_weights(path: Path, weights: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write a state dict; the same weights and metadata always give the same bytes."""
    # The writer of the safetensors library orders the metadata anew in each process.
    tensors = {
        name: (_FILE_DTYPES[tensor.dtype], tuple(tensor.shape)) for name, tensor in weights.items()
    }
    with TensorWriter(path, tensors, metadata) as writer:
        for name, tensor in weights.items():
            array = tensor.contiguous().numpy().astype(DTYPES[tensors[name][0]], copy=False)
            writer.write(name, 0, array)
