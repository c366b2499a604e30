"""Steps that are recorded on a GPU against the same steps, taken one operation after the other."""

import pytest
import torch
from torch import nn

from tests.training.recipes import RECIPE
from vitscope.networks.building.family import find_family
from vitscope.training.steps import Steps, optimizer_of, set_learning_rate, take_step

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(
        not torch.cuda.is_available(), reason="needs a CUDA device, and there is none"
    ),
]
FULL = RECIPE | {"bfloat16": False}
NETWORKS = {
    "vit": {"patch_size": 4, "embed_dim": 32, "depth": 2, "num_heads": 2},
    "resnet": {"block": "bottleneck", "blocks": [1, 1, 1, 1], "width": 8},
}
STEPS = 6


def network(family: str) -> nn.Module:
    torch.manual_seed(0)
    return find_family(family).build(NETWORKS[family], 10, 32).train().cuda()


@pytest.mark.parametrize("sam", [None, 0.05])
@pytest.mark.parametrize("family", NETWORKS)
def test_recorded_steps_are_those_taken_one_by_one(family: str, sam: float | None) -> None:
    recorded, plain, recipe = network(family), network(family), FULL | {"sam": sam}
    steps = Steps(recorded, optimizer_of(recorded, recipe), recipe)
    optimizer = optimizer_of(plain, recipe)
    torch.manual_seed(1)
    for number in range(1, STEPS + 1):
        images = torch.randn(16, 3, 32, 32, device="cuda")
        targets = torch.randn(16, 10, device="cuda").softmax(1)
        loss, _ = steps.take(images, targets, 1e-3 * number)
        set_learning_rate(optimizer, 1e-3 * number)
        expected, _ = take_step(plain, optimizer, images, targets, recipe)
        torch.testing.assert_close(loss, expected, rtol=1e-5, atol=0)
    for name, tensor in plain.state_dict().items():
        torch.testing.assert_close(recorded.state_dict()[name], tensor, rtol=1e-4, atol=1e-6)


def test_two_recordings_may_run_at_once() -> None:
    """Each on a stream of its own: they share no workspace."""
    models = [network("vit") for _ in range(2)]
    steps = [Steps(model, optimizer_of(model, FULL), FULL) for model in models]
    streams = [torch.cuda.Stream() for _ in models]
    torch.manual_seed(1)
    images = torch.randn(16, 3, 32, 32, device="cuda")
    targets = torch.randn(16, 10, device="cuda").softmax(1)
    torch.cuda.synchronize()
    for _ in range(20):
        for each, stream in zip(steps, streams, strict=True):
            with torch.cuda.stream(stream):
                each.take(images, targets, 1e-3)
    torch.cuda.synchronize()
    for one, other in zip(*(model.parameters() for model in models), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)
