import subprocess
import sys

import pytest
import torch
from torch import Tensor, nn

from tests.helpers.networks import FAMILIES, MINI, build_undrawn, described
from tests.helpers.processes import python
from vitscope.networks.building.networks import (
    drawn_network,
    fill,
    uncompiled,
    uninitialized_network,
)
from vitscope.networks.finding.blocks import list_blocks


class Asking(nn.Conv2d):
    """A block that asks the compiler while it is recorded."""

    def forward(self, images: Tensor) -> Tensor:
        import torch._dynamo.config as config

        assert config is torch._dynamo.config
        if torch._dynamo.is_compiling():
            raise ValueError
        return (images + super().forward(images)).mean((2, 3))


def test_a_network_that_asks_is_read() -> None:
    found = list_blocks("net", Asking(3, 3, 3, padding=1), described(8) | {"classes": 3})
    assert found.table["kind"].tolist() == ["stem"]


def test_nothing_is_compiled_in_a_block_and_all_is_behind_it() -> None:
    model = nn.Linear(2, 2)
    compiled = []

    def backend(graph: torch.fx.GraphModule, _: object) -> object:
        compiled.append(graph)
        return graph.forward

    function = torch.compile(model, backend=backend, fullgraph=True)
    with uncompiled(), uncompiled():
        inside = function(torch.ones(2))
    assert not compiled
    assert torch.equal(inside, function(torch.ones(2)))
    assert len(compiled) == 1


def test_weights_are_copied_and_cast() -> None:
    arch = {"block": "basic", "blocks": [1, 1, 1, 1], "width": 2}
    empty = build_undrawn("resnet", arch, num_classes=3, image_size=32)
    state = {
        key: torch.full(tensor.shape, 0.5).to(
            torch.bfloat16 if tensor.is_floating_point() else torch.int64
        )
        for key, tensor in empty.state_dict().items()
    }
    model = fill(empty, state)
    weight = model.get_parameter("layer0.0.weight")
    assert weight.dtype == torch.float32
    assert weight.requires_grad
    state["layer0.0.weight"].zero_()
    assert (weight == 0.5).all()


def test_an_undrawn_network_has_all_that_is_not_loaded() -> None:
    """Its buffers are those of a network that is drawn, which the random numbers do not reach."""
    for name in FAMILIES.values():
        network = {**described(), **MINI[name], "classes": 10}
        torch.manual_seed(3)
        undrawn = uninitialized_network(network)
        following = torch.rand(1)
        torch.manual_seed(3)
        assert torch.equal(following, torch.rand(1))
        buffers = dict(drawn_network(network).named_buffers())
        assert {key: torch.equal(each, buffers[key]) for key, each in undrawn.named_buffers()} == (
            dict.fromkeys(buffers, True)
        )


# In fresh interpreters: what was declared or imported cannot be taken back.


def importing() -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "import torchvision"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def fits() -> bool:
    """Tell whether torchvision can be imported here without help."""
    return importing().returncode == 0


@pytest.mark.nightly
def test_torchvision_and_timm_can_be_imported() -> None:
    python(
        "from vitscope.networks.building import timm_import\n"
        "timm_import.declare_torchvision_operators()\n"
        "import torchvision.transforms.v2\n"
        "assert timm_import.import_timm('timm.data').Mixup\n"
        "timm_import.declare_torchvision_operators()\n"
    )


@pytest.mark.nightly
def test_operators_are_declared_only_where_they_are_missing(fits: bool) -> None:
    printed = python(
        "from vitscope.networks.building import timm_import as ops\n"
        "ops.declare_torchvision_operators()\n"
        "ops.declare_torchvision_operators()\n"
        "print(len(ops._LIBRARIES))\n"
    )
    assert printed.strip() == ("0" if fits else "1")


@pytest.mark.nightly
def test_what_is_declared_already_stays() -> None:
    printed = python(
        "import torch\n"
        "library = torch.library.Library('torchvision', 'FRAGMENT')\n"
        "library.define('nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor')\n"
        "from vitscope.networks.building.timm_import import declare_torchvision_operators\n"
        "declare_torchvision_operators()\n"
        "print(hasattr(torch.ops.torchvision, 'qnms'))\n"
        "import torchvision\n"
    )
    assert printed.strip() == "True"


@pytest.mark.nightly
def test_the_help_is_needed_where_we_say_so(fits: bool) -> None:
    if fits:
        pytest.skip("torchvision fits the torch of this environment")
    assert "torchvision::nms" in importing().stderr
