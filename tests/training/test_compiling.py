import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from tests.helpers.networks import described
from tests.helpers.refusals import refusal
from tests.training.recipes import MEAN, RECIPE, STD, Splits, break_off
from vitscope.errors import VitscopeError
from vitscope.files.tensors import TensorFile
from vitscope.files.whole import sha256_of
from vitscope.jobs import training
from vitscope.jobs.job import Resources
from vitscope.networks.building.networks import find_family
from vitscope.studies.loading import BUNDLED_STUDIES, load_study
from vitscope.training import compiling
from vitscope.training.batches import seeded
from vitscope.training.compiling import (
    CACHE,
    compiled,
    pays_compiling,
    running_eagerly,
    wants_compiling,
)
from vitscope.training.loop import train

SHORT = RECIPE | {"bfloat16": False, "epochs": 3, "batch_size": 45, "randaugment": None}
ALWAYS = {"compile": "always"}
# With chance in them, and with statistics of batches.
NETWORKS: dict[str, Any] = {
    "vit": {"patch_size": 8, "embed_dim": 16, "depth": 1, "num_heads": 2}
    | {"drop_path_rate": 0.2, "drop_rate": 0.1},
    "resnet": {"block": "basic", "blocks": [1, 1], "width": 8},
}
# Of compiled networks, which add in another order: of losses, over several steps.
ROUNDING = 1e-4


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE, "")
    monkeypatch.delenv(CACHE)


def trained(
    splits: Splits,
    folder: Path,
    family: str,
    say: Any = lambda text: None,
    **changes: Any,
) -> list[dict[str, Any]]:
    with seeded(0):
        model = find_family(family).build(NETWORKS[family], 10, 32)
    others = {"mean": MEAN, "std": STD, "say": say, "compiler_cache": folder.parent / "cache"}
    history = train(model, *splits, SHORT | changes, 0, folder, workers=0, **others)
    assert model._compiled_call_impl is None
    return history


def meta_network(name: str) -> tuple[nn.Module, torch.Tensor]:
    settings = load_study(BUNDLED_STUDIES / "paper.yaml").network(name)
    family = find_family(settings["family"])
    with torch.device("meta"):
        return family.build(settings["arch"], settings["classes"], 32), torch.zeros(1, 3, 32, 32)


def test_long_trainings_are_worth_it() -> None:
    """Of the paper's ViT-Ti, of 1.67e9 multiply-adds: nine minutes of 7,200 images a second."""
    model, image = meta_network("vit_ti")
    assert compiling.multiply_adds_before_compiling(model, image) == pytest.approx(1.67e9, rel=1e-3)
    per_second = 250 / 0.0348
    minutes = [5, 9, 10, 60]
    long = [pays_compiling(model, RECIPE, image, round(60 * m * per_second)) for m in minutes]
    assert long == [False, False, True, True]
    assert pays_compiling(model, RECIPE | {"sam": 0.05}, image, round(60 * 5 * per_second))


def test_on_the_processor_only_always_compiles() -> None:
    model, image = nn.Flatten(), torch.zeros(1, 3, 4, 4)
    for asked, wanted in {"auto": False, "always": True, "never": False}.items():
        assert wants_compiling(model, {"compile": asked}, image, 10**30) is wanted


class Counting(nn.Module):
    """A network with chance and statistics, all of which a trial changes."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.drop = nn.BatchNorm2d(3), nn.Dropout(0.5)
        self.head = nn.Linear(3, 4)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.head(self.drop(self.norm(images)).mean((2, 3)))


def compile_as(monkeypatch: pytest.MonkeyPatch, error: Exception | None) -> None:
    """Take for the compiler what runs the network as it is, or what fails."""

    def compile(self: nn.Module, **options: Any) -> None:
        def call(*images: torch.Tensor) -> Any:
            if error:
                raise error
            return self._call_impl(*images)

        self._compiled_call_impl = call

    monkeypatch.setattr(nn.Module, "compile", compile)


def compiled_in(recipe: dict[str, Any], model: nn.Module, said: list[str]) -> Any:
    image = torch.zeros(1, 3, 4, 4)
    return compiled(model, recipe, image, classes=4, images=10, cache=None, say=said.append)


def test_the_trial_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    compile_as(monkeypatch, None)
    model = Counting()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with seeded(3), compiled_in(RECIPE | ALWAYS, model, []):
        assert model._compiled_call_impl is not None
        after = torch.rand(3)
    assert model._compiled_call_impl is None
    with seeded(3):
        assert torch.equal(after, torch.rand(3))
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_where_compiling_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Auto trains without, and always is refused; a lack of memory is another failure."""
    reason = "InvalidCxxCompiler: No working C++ compiler found\nSet an option"
    compile_as(monkeypatch, RuntimeError(reason))
    monkeypatch.setattr(compiling, "wants_compiling", lambda *_: True)
    model, said = Counting(), list[str]()
    with compiled_in(RECIPE, model, said):
        assert model._compiled_call_impl is None
        model(torch.zeros(1, 3, 4, 4))
    assert said[1:] == [
        "training uncompiled, since torch.compile fails here: InvalidCxxCompiler: No working C++ "
        "compiler found"
    ]
    assert refusal(compiled_in(RECIPE | ALWAYS, model, []).__enter__) == (
        "training.compile is always, and torch.compile cannot compile the Counting on this machine "
        "(InvalidCxxCompiler: No working C++ compiler found): set training.compile to auto or "
        "never."
    )
    assert model._compiled_call_impl is None
    compile_as(monkeypatch, torch.OutOfMemoryError("out of memory"))
    with pytest.raises(torch.OutOfMemoryError), compiled_in(RECIPE | ALWAYS, Counting(), []):
        pass


@pytest.mark.parametrize("own", [None, "elsewhere"])
def test_a_job_keeps_what_torch_makes_beside_all_trainings(
    monkeypatch: pytest.MonkeyPatch, splits: Splits, tmp_path: Path, own: str | None
) -> None:
    given: dict[str, Any] = {}
    monkeypatch.setattr("vitscope.training.loop.train", lambda *_, **named: given.update(named))
    if own:
        monkeypatch.setenv(CACHE, own)
    network = described() | {"family": "resnet", "arch": NETWORKS["resnet"], "classes": 10}
    place = tmp_path / "training" / "net"
    place.mkdir(parents=True)
    training.train_model_job(
        dict(zip(("train", "test"), splits, strict=True)),
        {"epochs": str(place / "epochs"), "end": str(place / "end.safetensors")},
        {"recipe": RECIPE, "device": "cpu", "network": network | {"std": STD}},
        Resources(),
    )
    assert given["compiler_cache"] == (None if own else tmp_path / "training" / ".compiled")


@pytest.mark.nightly
def test_without_a_c_compiler_it_fails_in_one_sentence(splits: Splits, tmp_path: Path) -> None:
    from torch._inductor import config

    said = r"cannot compile the \w+ on this machine .*compiler"
    without = config.patch({"cpp.cxx": ("no-such-compiler",)})
    with without, pytest.raises(VitscopeError, match=said):
        trained(splits, tmp_path / "one", "vit", **ALWAYS)


@pytest.fixture
def cached() -> Iterator[Any]:
    """Counts of what was in a cache; compiled code in memory is forgotten before and after."""
    import torch._dynamo

    torch._dynamo.reset()
    counters = torch._dynamo.utils.counters
    counters.clear()
    yield lambda: (
        counters["inductor"]["fxgraph_cache_miss"],
        counters["aot_autograd"]["autograd_cache_hit"],
    )
    torch._dynamo.reset()


@pytest.mark.nightly
@pytest.mark.parametrize("family", NETWORKS)
def test_a_compiled_training_is_that_without_but_for_rounding(
    splits: Splits, tmp_path: Path, family: str, cached: Any
) -> None:
    plain = trained(splits, tmp_path / "plain", family)
    found = trained(splits, tmp_path / "compiled", family, **ALWAYS)
    assert os.environ[CACHE] == str(tmp_path / "cache")
    misses, hits = cached()
    assert misses
    for ours, theirs in zip(found, plain, strict=True):
        for column in ("loss", "test_loss"):
            assert ours[column] == pytest.approx(theirs[column], rel=ROUNDING)
    ours, theirs = (
        TensorFile(tmp_path / name / "end.safetensors") for name in ("compiled", "plain")
    )
    assert ours.names == theirs.names
    for name in ours.names:
        np.testing.assert_allclose(ours.array(name), theirs.array(name), rtol=1e-2, atol=1e-3)

    # One that is broken off goes on, from what is in the cache, and ends with the same bytes.
    torch._dynamo.reset()
    with pytest.raises(KeyboardInterrupt):
        trained(splits, tmp_path / "again", family, partial(break_off, 2), **ALWAYS)
    said: list[str] = []
    trained(splits, tmp_path / "again", family, said.append, **ALWAYS)
    assert said[0].startswith("going on after epoch 2")
    ends = [tmp_path / name / "end.safetensors" for name in ("compiled", "again")]
    assert sha256_of(ends[0]) == sha256_of(ends[1])
    assert cached()[0] == misses
    assert cached()[1] > hits


def test_evaluation_runs_the_network_as_it_is() -> None:
    model, calls = Counting().eval(), []
    model.compile(backend=lambda graph, _: calls.append(graph) or graph.forward)
    with running_eagerly(model):
        model(torch.zeros(1, 3, 4, 4))
    assert not calls
    model(torch.zeros(1, 3, 4, 4))
    assert calls
