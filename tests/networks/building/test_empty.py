"""Empty models and how they are filled; tests/families compares them for every family."""

import pytest
import torch
from torch import nn

from tests.helpers.networks import build_empty
from vitscope.networks.building import networks as models


def test_weights_are_copied_and_cast() -> None:
    arch = {"block": "basic", "blocks": [1, 1, 1, 1], "width": 2}
    empty = build_empty("resnet", arch, num_classes=3, image_size=32)
    state = {
        key: torch.full(tensor.shape, 0.5).to(
            torch.bfloat16 if tensor.is_floating_point() else torch.int64
        )
        for key, tensor in empty.state_dict().items()
    }
    model = models.fill(empty, state)
    weight = model.get_parameter("layer0.0.weight")
    assert weight.dtype == torch.float32
    assert weight.requires_grad
    state["layer0.0.weight"].zero_()
    assert (weight == 0.5).all()


def test_buffers_that_nobody_computes_are_refused() -> None:
    class Positions(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("positions", torch.arange(4), persistent=False)

    with torch.device("meta"):
        model = Positions()
    with pytest.raises(NotImplementedError, match="Positions holds buffers"):
        models.fill(model, {})
