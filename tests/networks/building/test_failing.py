"""What a network of a user fails with is explained with the module, the file and the line."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from vitscope.errors import VitscopeError
from vitscope.networks.building.own_code import explain_failure
from vitscope.networks.finding.blocks import list_blocks
from vitscope.package_data import ROOT


class Scaled(nn.Module):
    """A module with a mistake in it."""

    def forward(self, images: Tensor) -> Tensor:
        return images * self.scale


def failure(function: Callable[..., object], *arguments: object) -> Exception:
    with pytest.raises(Exception) as caught:  # noqa: PT011
        function(*arguments)
    return caught.value


def test_an_attribute_that_a_module_lacks() -> None:
    network = nn.Sequential(nn.Identity(), nn.Sequential(Scaled()))
    line = Scaled.forward.__code__.co_firstlineno + 1
    assert explain_failure(failure(network, torch.zeros(1))) == (
        f"the module '1.0' (Scaled) of the network fails at {__file__}, line {line}: "
        "AttributeError: 'Scaled' object has no attribute 'scale': correct it, or how the study "
        "says to build it."
    )


def test_shapes_that_do_not_fit() -> None:
    network = nn.Sequential(nn.Linear(2, 3), nn.Linear(4, 5))
    # Of torch's modules nobody has to know the line: it is where they are called.
    sentence = explain_failure(failure(lambda: network(torch.zeros(1, 2))))
    assert sentence is not None
    assert sentence.startswith(f"the module '1' (Linear) of the network fails at {__file__}, line ")
    assert "RuntimeError: mat1 and mat2 shapes cannot be multiplied (1x3 and 4x5)" in sentence


class Recording(TorchDispatchMode):
    """Stands for what records the operations of a network."""

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return function(*args, **(kwargs or {}))


def test_operations_may_be_recorded() -> None:
    def record() -> None:
        with Recording():
            nn.Sequential(nn.Flatten(7))(torch.zeros(1, 2))

    sentence = explain_failure(failure(record))
    assert sentence is not None
    assert sentence.startswith(
        f"the module '0' (Flatten) of the network fails at {__file__}, line "
    )


def test_the_network_itself_has_no_name() -> None:
    sentence = explain_failure(failure(Scaled(), torch.zeros(1)))
    assert sentence is not None
    assert sentence.startswith("the module (Scaled) of the network fails at ")


def run_by_vitscope(code: str, **names: object) -> Callable[..., None]:
    """Return a function that runs code as if it were vitscope's own."""
    compiled = compile(code, str(ROOT / "vitscope" / "some.py"), "exec")
    return lambda *_: exec(compiled, names)


def test_a_network_of_another_family() -> None:
    ask = run_by_vitscope("network.patch_embed", network=nn.Sequential(nn.Identity()))
    assert explain_failure(failure(ask)) == (
        "the network's module (Sequential) has no 'patch_embed', which models of its family have: "
        "choose the family that fits it."
    )


def test_what_fails_elsewhere_is_not_explained() -> None:
    assert explain_failure(failure(lambda: 1 / 0)) is None
    network = nn.Identity()
    network.register_forward_hook(run_by_vitscope("1 / 0"))
    # Our own mistakes are shown in full, wherever they happen.
    assert explain_failure(failure(network, torch.zeros(1))) is None


def test_torch_alone_may_fail_in_a_network_that_vitscope_runs() -> None:
    ask = run_by_vitscope("network(1)", network=nn.Sequential(nn.Linear(2, 3)))
    sentence = explain_failure(failure(ask))
    assert sentence is not None
    assert sentence.startswith("the module '0' (Linear) of the network fails: TypeError: ")


def test_a_network_that_takes_other_images() -> None:
    """Recorded: what is then between the network and torch is none of its code."""
    network = nn.Sequential(nn.Conv2d(1, 2, 3))
    described = {"mean": [0.5] * 3, "image_size": 8, "classes": None}
    with pytest.raises(
        VitscopeError, match=r"^models\.net: the module '0' \(Conv2d\) of the network"
    ):
        list_blocks("net", network, described)
