"""Choose the device that networks run on."""

from typing import Any

import torch

from vitscope.errors import VitscopeError


def pick_device(wanted: str) -> torch.device:
    """Return the device to run on; set a GPU to full float32 and to reproducible results."""
    if wanted == "cuda" and not torch.cuda.is_available():
        raise VitscopeError(
            "device: the study asks for cuda and this machine has none; set device to auto or cpu."
        )
    if wanted == "cpu" or not torch.cuda.is_available():
        return torch.device("cpu")
    # Switch off TF32, the default for convolutions, which keeps only three decimal digits.
    cudnn: Any = torch.backends.cudnn
    matmul: Any = torch.backends.cuda.matmul
    for operation in (matmul, cudnn.conv, cudnn.rnn):
        operation.fp32_precision = "ieee"
    cudnn.benchmark, cudnn.deterministic = False, True
    return torch.device("cuda")
