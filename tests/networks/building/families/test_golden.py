from typing import Any

import pytest
import torch
from torch.nn.functional import cross_entropy

from tests.helpers.networks import described, read
from vitscope.networks.checkpoints.translation import translate
from vitscope.networks.finding.blocks import list_blocks


@pytest.mark.parametrize("name", ["resnet_50", "vit_ti"])
def test_values_of_the_authors(golden: Any, name: str) -> None:
    expected = golden.expected[name]
    model = golden.model(name)
    images, labels = golden.images(16)
    logits, maps = read(model, list_blocks(name, model, described()).points, images)

    assert sum(parameter.numel() for parameter in model.parameters()) == expected["params"]
    assert [list(latent.shape) for latent in maps] == expected["shapes"]
    variances = [latent.flatten(2).var(dim=2).mean().item() for latent in maps]
    assert variances == pytest.approx(expected["variance"], rel=1e-5)
    assert logits[0, :8].tolist() == pytest.approx(expected["logits_first"], rel=1e-5, abs=1e-5)
    assert cross_entropy(logits, labels).item() == pytest.approx(expected["nll"], rel=1e-5)


@pytest.mark.parametrize("name", ["pit_ti", "swin_ti"])
def test_translating_twice_changes_nothing(golden: Any, name: str) -> None:
    model = golden.model(name)
    once = translate(golden.state_dict(name), model).weights
    twice = translate(once, model).weights
    assert twice.keys() == once.keys() == model.state_dict().keys()
    assert all(torch.equal(twice[key], once[key]) for key in once)


def test_recomputed_buffers_are_those_of_the_checkpoint(golden: Any) -> None:
    model = golden.model("swin_ti")
    buffers = dict(model.named_buffers())
    stored = {
        key: tensor
        for key, tensor in golden.state_dict("swin_ti").items()
        if key.endswith(("relative_position_index", "attn_mask"))
    }
    assert len(stored) == 17
    for key, tensor in stored.items():
        assert torch.equal(buffers[key].long(), tensor.long()), key
