"""Empty models and how they are filled; tests/families compares them for every family."""

import pytest
import torch
from torch import nn

from vitscope.networks.building import empty as models


def test_an_empty_model_has_shapes_and_no_values() -> None:
    model = models.build_empty("resnet", {"depth": 50}, num_classes=100, image_size=32)
    assert all(tensor.is_meta for tensor in model.state_dict().values())
    assert model.classifier[0].dense.weight.shape == (100, 2048)


def test_building_leaves_the_random_state() -> None:
    torch.manual_seed(0)
    before = torch.get_rng_state()
    models.build_empty("vit", {"name": "vit_tiny_patch16_224"}, num_classes=10, image_size=32)
    assert torch.equal(torch.get_rng_state(), before)


def test_weights_are_copied_and_cast() -> None:
    arch = {"block": "basic", "blocks": [1, 1, 1, 1], "width": 2}
    empty = models.build_empty("resnet", arch, num_classes=3, image_size=32)
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


def test_a_missing_key_is_an_error() -> None:
    arch = {"block": "basic", "blocks": [1, 1, 1, 1], "width": 2}
    with pytest.raises(RuntimeError, match="Missing key"):
        models.fill(models.build_empty("resnet", arch, num_classes=3, image_size=32), {})


def test_buffers_that_nobody_computes_are_refused() -> None:
    class Positions(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("positions", torch.arange(4), persistent=False)

    with torch.device("meta"):
        model = Positions()
    with pytest.raises(NotImplementedError, match="Positions holds buffers"):
        models.fill(model, {})
