"""Torch's compiler: put off until something needs it, and then the real one."""

import subprocess
import sys

import pytest
import torch
from torch import nn

from vitscope.networks.building.compiler import uncompiled

# What comes of code in a block, and that a function is compiled behind it all the same.
IN_BLOCK = """
import sys
import torch
from vitscope.networks.building import compiler
with compiler.deferred_compiler():
    {code}
print("torch._dynamo" in sys.modules)
function = torch.compile(lambda x: x + 1, backend="eager", fullgraph=True)
assert function(torch.ones(1)) == 2
assert torch._dynamo.config is sys.modules["torch._dynamo.config"]
assert not any(isinstance(each, compiler._Deferred) for each in [*sys.modules.values()])
"""
ONE_CONFIG = "assert config is torch._dynamo.eval_frame.config and config.__spec__.origin"
# A network that asks while it is recorded.
ASKING = """
import torch
from vitscope.networks.finding.blocks import list_blocks
class Asking(torch.nn.Conv2d):
    def forward(self, images):
        {code}
        return (images + super().forward(images)).mean((2, 3))
described = {{"image_size": 8, "mean": [0.5] * 3, "classes": 3}}
print(list_blocks("net", Asking(3, 3, 3, padding=1), described).table["kind"].tolist())
"""


def run(code: str) -> str:
    """Run code in a fresh interpreter: what was imported cannot be taken back."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    "code",
    [
        "import torch._dynamo.config as config; " + ONE_CONFIG,
        "if torch._dynamo.is_compiling(): raise ValueError",
    ],
)
def test_a_network_that_asks_gets_the_real_one(code: str) -> None:
    assert run(ASKING.format(code=code)) == "['stem']"


@pytest.mark.nightly
@pytest.mark.parametrize(
    "code",
    [
        "from torch._dynamo import config; " + ONE_CONFIG,
        "import torch._dynamo as dynamo; assert dynamo.config is torch._dynamo.config",
        "import torch._dynamo.variables.tensor as each; assert each.TensorVariable",
        "from torch._dynamo.utils import counters; counters.clear()",
        "torch.compiler.disable(torch.nn.Linear(1, 1))(torch.ones(1))",
    ],
)
def test_all_ways_to_ask_lead_to_it(code: str) -> None:
    assert run(IN_BLOCK.format(code=code)) == "True"


@pytest.mark.parametrize(
    "code",
    [
        "from vitscope.networks.building.compiler import import_timm; import_timm()",
        pytest.param("import torch._dynamo", marks=pytest.mark.nightly),
        pytest.param(
            "assert torch.compiler.disable(lambda x: 2 * x)(2) == 4", marks=pytest.mark.nightly
        ),
    ],
)
def test_what_asks_nothing_of_it_does_without(code: str) -> None:
    assert run(IN_BLOCK.format(code=code)) == "False"


@pytest.mark.nightly
def test_what_is_switched_off_stays_so_when_the_compiler_comes() -> None:
    code = "double = torch.compiler.disable(lambda x: 2 * x)"
    later = (
        "graphs = []\n"
        "def backend(graph, _):\n"
        "    graphs.append(graph.code)\n"
        "    return graph.forward\n"
        "torch.compile(lambda x: double(x) + 1, backend=backend)(torch.ones(1))\n"
        "print(len(graphs), any('2' in graph for graph in graphs))"
    )
    assert run(IN_BLOCK.format(code=code) + later).splitlines()[-1] == "1 False"


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
