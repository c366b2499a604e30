"""The device that networks run on."""

from typing import Any

import torch

from vitscope.errors import VitscopeError


def pick_device(wanted: str) -> torch.device:
    """Return the device to run on; a missing CUDA device that was asked for is an error.

    A CUDA device is told to compute in full float32, and with algorithms that give the same bytes
    each time: TF32, which convolutions take by default, keeps three decimal digits.
    """
    if wanted == "cuda" and not torch.cuda.is_available():
        raise VitscopeError(
            "device: the study asks for cuda and this machine has none; set device to auto or cpu."
        )
    if wanted == "cpu" or not torch.cuda.is_available():
        return torch.device("cpu")
    cudnn: Any = torch.backends.cudnn
    matmul: Any = torch.backends.cuda.matmul
    for operation in (matmul, cudnn.conv, cudnn.rnn):
        operation.fp32_precision = "ieee"
    cudnn.benchmark, cudnn.deterministic = False, True
    return torch.device("cuda")
