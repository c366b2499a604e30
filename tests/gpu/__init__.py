"""The same measurements on a CPU and on a GPU."""

import pytest
import torch

needs_cuda = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="needs a CUDA device, and there is none"
)
