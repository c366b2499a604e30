"""What is recorded on a GPU against the same, done one operation after the other.

Without a GPU the bodies run on the processor, whose recordings do the work again.
"""

from typing import Any

import pytest
import torch
from torch import nn

from tests.gpu import needs_cuda
from tests.helpers.recording import record_here
from tests.training.recipes import RECIPE
from vitscope.measures.hessian_operator import hessian_of_model
from vitscope.networks.building.networks import find_family
from vitscope.networks.running.cuda_graphs import GraphRecording, own_device_stream
from vitscope.training.steps import TrainingSteps, optimizer_for_steps, set_learning_rate, take_step

pytestmark = pytest.mark.nightly
FULL = RECIPE | {"bfloat16": False}
NETWORKS: dict[str, Any] = {
    "vit": {"patch_size": 4, "embed_dim": 32, "depth": 2, "num_heads": 2},
    "resnet": {"block": "bottleneck", "blocks": [1, 1, 1, 1], "width": 8},
}
STEPS = 6


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=needs_cuda)])
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> torch.device:
    if request.param == "cpu":
        record_here(monkeypatch)
    return torch.device(request.param)


def network(family: str, device: torch.device) -> nn.Module:
    torch.manual_seed(0)
    return find_family(family).build(NETWORKS[family], 10, 32).train().to(device)


def batch(device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    images = torch.randn(16, 3, 32, 32, device=device)
    images = images.to(memory_format=torch.channels_last)
    return images, torch.randn(16, 10, device=device).softmax(1)


@pytest.mark.parametrize("sam", [None, 0.05])
@pytest.mark.parametrize("family", NETWORKS)
def test_recorded_steps(family: str, sam: float | None, device: torch.device) -> None:
    recorded, plain = (network(family, device) for _ in range(2))
    recipe = FULL | {"sam": sam}
    steps = TrainingSteps(recorded, optimizer_for_steps(recorded, recipe), recipe)
    optimizer = optimizer_for_steps(plain, recipe)
    torch.manual_seed(1)
    for number in range(1, STEPS + 1):
        images, targets = batch(device)
        rate = 1e-3 * number
        with own_device_stream(device):
            loss, _ = steps.take(images, targets, rate)
        set_learning_rate(optimizer, rate)
        expected, _ = take_step(plain, optimizer, images, targets, recipe)
        torch.testing.assert_close(loss, expected, rtol=1e-5, atol=0)
    for name, tensor in plain.state_dict().items():
        torch.testing.assert_close(recorded.state_dict()[name], tensor, rtol=1e-4, atol=1e-6)


def test_two_recordings_may_run_at_once(device: torch.device) -> None:
    """Each on a stream of its own: they share no workspace."""
    models = [network("vit", device) for _ in range(2)]
    steps = [TrainingSteps(model, optimizer_for_steps(model, FULL), FULL) for model in models]
    module = torch.get_device_module(device)
    streams = [module.Stream() for _ in models]
    torch.manual_seed(1)
    images, targets = batch(device)
    module.synchronize()
    for _ in range(20):
        for each, stream in zip(steps, streams, strict=True):
            with module.stream(stream):
                each.take(images, targets, 1e-3)
    module.synchronize()
    for one, other in zip(*(model.parameters() for model in models), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("family", NETWORKS)
def test_recorded_products_of_the_hessian(family: str, device: torch.device) -> None:
    model = network(family, device)
    with own_device_stream(device):
        hessian = hessian_of_model(model, *batch(device), 0.05)
        for _ in range(STEPS):
            vector = torch.randn(hessian.size, device=device)
            (expected,) = hessian._product(vector)
            error = torch.linalg.vector_norm(hessian(vector) - expected)
            assert error <= 1e-4 * torch.linalg.vector_norm(expected)


def test_a_network_that_waits_for_the_gpu_runs_as_it_is(device: torch.device) -> None:
    """After the attempt to record it the stream works on, and so do random numbers."""
    said: list[str] = []
    recording = GraphRecording(said.append)

    def work(values: torch.Tensor) -> tuple[torch.Tensor]:
        return (values * float(values.sum()),)

    with own_device_stream(device):
        for number in range(STEPS):
            (found,) = recording.run(work, torch.full((2,), float(number), device=device))
            assert found.tolist() == [2.0 * number**2] * 2
        assert len(set(torch.rand(4, device=device).tolist())) == 4
    assert len(said) == (device.type == "cuda")
