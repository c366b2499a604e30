"""Networks that are compiled, and networks that ask the compiler something while they run."""

import torch
from torch import Tensor, nn

from vitscope.networks.building.networks import uncompiled
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
    described = {"image_size": 8, "mean": [0.5] * 3, "classes": 3}
    found = list_blocks("net", Asking(3, 3, 3, padding=1), described)
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
