"""What cannot be looked at, or not with confidence, is told in a sentence."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import vitscope
from tests.networks.running.test_predictions import Noise
from tests.scopes.networks import Convolutions, network, pixels
from vitscope.errors import VitscopeError
from vitscope.scopes.looking import Scope


def looked_at(model: nn.Module, **more: Any) -> Scope:
    return vitscope.look(model, pixels(4), mean=0.5, std=0.25, **more)


def test_passes_that_differ_are_among_the_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    scope = looked_at(network(Noise))
    (warning,) = scope.warnings
    assert warning.startswith("two passes of the same images differ, from the module 'stem' on")
    assert f"vitscope: warning: {warning}" in capsys.readouterr().out
    assert looked_at(network(Convolutions)).warnings == []


class ThroughNumPy(Convolutions):
    def forward(self, images: Tensor) -> Tensor:
        return super().forward(torch.from_numpy(images.numpy() * 2))


UNFIT: dict[str, tuple[Callable[[], Any], str]] = {
    "an unknown device": (
        lambda: looked_at(network(), device="gpu"),
        "^device: found 'gpu', which this machine or its torch does not have, allowed: 'cpu'",
    ),
    "a device that is not there": (
        lambda: looked_at(network(), device="cuda:99"),
        "^device: found 'cuda:99', which this machine",
    ),
    "no values": (lambda: looked_at(network().to("meta")), "tensors on torch's meta device, which"),
    "blocks without values": (
        lambda: vitscope.blocks(network().to("meta"), torch.zeros(2, 3, 16, 16)),
        "tensors on torch's meta device",
    ),
    "NumPy": (
        lambda: looked_at(network(ThroughNumPy)),
        "compute with torch what it computes with NumPy",
    ),
    "a measure without an argument": (
        lambda: looked_at(network()).measure(lambda: 1.0),
        "is called with feature maps, and does not take them: too many positional arguments",
    ),
    "a measure with another keyword": (
        lambda: looked_at(network()).measure(lambda maps: maps.mean((1, 2, 3)), power=2),
        "is called with feature maps, power, and does not take them: got an unexpected keyword",
    ),
}


@pytest.mark.parametrize("kind", UNFIT)
def test_what_cannot_be_looked_at_ends_in_a_sentence(kind: str) -> None:
    look, sentence = UNFIT[kind]
    with pytest.raises(VitscopeError, match=sentence):
        look()
