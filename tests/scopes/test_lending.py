import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import vitscope
from tests.helpers.looking import OF_SOME_NETWORKS, in_memory
from tests.scopes.networks import Convolutions, Transformer, looked_at, network, pixels
from vitscope.errors import VitscopeError
from vitscope.measures import registry
from vitscope.scopes import making

ANALYSIS = {
    "frequency_noise": {"seeds": 1, "frequencies": [0.5]},
    "faithfulness": {"images": 2, "steps": 2},
    "occlusion": {"draws": 1, "shares": [0.5]},
    "receptive_field": {"batch_size": 4},
    "robustness": {"corruptions": ["fog"], "severities": [1]},
    "landscape": {"points": 3, "precision": "bfloat16"},
    "hessian": {
        "batches": 1,
        "density_batches": 1,
        "density_probes": 1,
        "density_steps": 5,
        "top": 1,
    },
}


look = partial(looked_at, loss={"weight_decay": 0.1}, analysis=ANALYSIS)


def state(model: nn.Module) -> list[Any]:
    """Return all that a measurement might change: objects by themselves, values as copies."""
    tensors = [*model.parameters(), *model.buffers()]
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks")
    return [
        [
            (id(each), each.data_ptr(), each.stride(), each.device, each.requires_grad, each.grad)
            for each in tensors
        ],
        [each.detach().clone().tolist() for each in tensors],
        [module.training for module in model.modules()],
        [len(getattr(module, name)) for module in model.modules() for name in hooks],
        [sorted(vars(module)) for module in model.modules()],
    ]


def lent(kind: type[nn.Module]) -> nn.Module:
    """Return a network in training, a part of it frozen."""
    model = network(kind).train()
    model.head.requires_grad_(False)
    next(module for module in model.modules() if isinstance(module, nn.Conv2d)).eval()
    return model


@pytest.mark.parametrize("kind", [Transformer, Convolutions])
def test_every_measure_gives_the_network_back(kind: type[nn.Module]) -> None:
    model = lent(kind)
    before = state(model)
    scope = look(model)
    there = in_memory(attends=kind is Transformer)
    assert {*there, "predictions"} - {*OF_SOME_NETWORKS} == {*scope.available()}
    for name in scope.available():
        assert len(scope.table(name)) > 0
        assert state(model) == before, name


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of this test's own for all that is temporary, on disk and in memory."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(making, "IN_MEMORY", tmp_path)
    return tmp_path


class Interrupt:
    """Ends the n-th pass of a network as a user would, behind its first module."""

    def __init__(self, model: nn.Module, passes: int) -> None:
        self._left = passes
        self.hook = next(model.children()).register_forward_hook(self)

    def __call__(self, *_: object) -> None:
        self._left -= 1
        if self._left == 0:
            raise KeyboardInterrupt


TABLES = [name for name in (*in_memory()[1:], "predictions") if name not in OF_SOME_NETWORKS]


@pytest.mark.parametrize("table", TABLES)
def test_interrupted_in_the_middle(table: str, scratch: Path) -> None:
    model = lent(
        Convolutions if table in {*in_memory(attends=False), "predictions"} else Transformer
    )
    scope = look(model)
    before, files = state(model), {*scratch.iterdir()}
    # All images of a probe and of the ratios of norms are of one pass.
    in_one = table in ("probe", "probe_tokens", "class_separation", "skip_ratio")
    several = needs(table) in ("loss", "model") and not in_one
    hook = Interrupt(model, 2 if several else 1)
    with pytest.raises(KeyboardInterrupt):
        scope.table(table)
    hook.hook.remove()
    assert state(model) == before
    assert {*scratch.iterdir()} == files
    # And the next time it is measured.
    assert len(scope.table(table)) > 0


def needs(table: str) -> str:
    if table == "predictions":
        return "predictions"
    declared = registry.declared(table)
    return registry.declared(declared.parts_of or table).needs


def test_nothing_is_left_behind(scratch: Path) -> None:
    scope = look()
    assert len(scope.table("feature_variance")) > 0
    assert [*scratch.iterdir()]
    del scope
    assert not [*scratch.iterdir()]


@pytest.mark.parametrize("images", [pixels()[:, :1], [pixels()[0], 3], pixels().float() - 1])
def test_nothing_is_left_of_images_that_fail(images: Any, scratch: Path) -> None:
    with pytest.raises((VitscopeError, TypeError, ValueError)):
        vitscope.look(network(), images, mean=0, std=1)
    assert not [*scratch.iterdir()]


def test_the_fast_path_of_torch_is_as_it_was() -> None:
    torch.backends.mha.set_fastpath_enabled(True)
    assert len(look().table("classification")) == 1
    assert torch.backends.mha.get_fastpath_enabled()
