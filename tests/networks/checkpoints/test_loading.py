"""Loading what was converted."""

from pathlib import Path

import pytest
import torch

from tests.helpers.checkpoints import NETWORK, network_weights
from vitscope.errors import VitscopeError
from vitscope.networks.building.family import find_family
from vitscope.networks.checkpoints.conversion import load_model

ROOT = Path(__file__).parents[3]


def test_a_loaded_model_is_the_one_that_was_saved(converted):
    original = find_family("resnet").build(NETWORK["arch"], 10, 32)
    original.load_state_dict(network_weights())
    model = load_model(converted, NETWORK)
    assert not model.training
    images = torch.rand(2, 3, 32, 32)
    with torch.inference_mode():
        assert torch.equal(model(images), original.eval()(images))


def test_loading_what_does_not_fit_is_refused(converted):
    with pytest.raises(VitscopeError, match="does not fit the model"):
        load_model(converted, {**NETWORK, "classes": 11})


def test_loading_a_damaged_file_is_refused(converted):
    converted.write_bytes(converted.read_bytes()[:-1])
    with pytest.raises(VitscopeError, match=r"resnet.safetensors is damaged"):
        load_model(converted, NETWORK)
