import importlib.util
from types import ModuleType

import numpy as np
import pytest
import torch
from scipy.ndimage import uniform_filter
from torch import Tensor, nn
from torch.nn import functional

from vitscope.studies.loading import BUNDLED_STUDIES

IMAGES = torch.randn(6, 3, 32, 32, generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def blurs() -> ModuleType:
    spec = importlib.util.spec_from_file_location("blurs", BUNDLED_STUDIES / "blurs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(member: nn.ModuleList, x: Tensor) -> list[Tensor]:
    return [x := step(x) for step in member]


def test_a_blur_is_the_mean_of_four_pixels(blurs: ModuleType) -> None:
    found = blurs.Blur()(IMAGES).numpy()
    expected = uniform_filter(IMAGES.numpy(), (1, 1, 2, 2), mode="nearest", origin=(0, 0, -1, -1))
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_nothing_of_a_plain_network_is_averaged(blurs: ModuleType) -> None:
    torch.manual_seed(0)
    network = blurs.plain().eval()
    *_, logits = run(network.members[0], IMAGES)
    torch.testing.assert_close(network(IMAGES), functional.log_softmax(logits, 1))


def test_an_ensemble_is_the_mean_of_maps_and_probabilities(blurs: ModuleType) -> None:
    torch.manual_seed(0)
    network = blurs.ensemble(3).eval()
    read: list[Tensor] = []
    network.means[4].register_forward_hook(lambda module, args, out: read.append(out))
    found = network(IMAGES)
    members = [run(member, IMAGES) for member in network.members]
    torch.testing.assert_close(read[0], torch.stack([maps[4] for maps in members]).mean(0))
    probabilities = torch.stack([maps[-1].softmax(1) for maps in members])
    torch.testing.assert_close(found, probabilities.mean(0).log())


def test_a_member_learns_from_its_part_of_a_batch(blurs: ModuleType) -> None:
    torch.manual_seed(0)
    network = blurs.ensemble(3).train()
    network(IMAGES)[2:4].sum().backward()
    learns = [
        any(p.grad is not None and p.grad.any() for p in m.parameters()) for m in network.members
    ]
    assert learns == [False, True, False]


def test_samples_of_dropout_differ_and_do_not_depend_on_the_batch(blurs: ModuleType) -> None:
    torch.manual_seed(0)
    network = blurs.dropped(0.1, 8).eval()
    one = blurs.dropped(0.1, 1).eval()
    one.load_state_dict(network.state_dict())
    whole = network(IMAGES)
    torch.testing.assert_close(network(IMAGES[2:4]), whole[2:4])
    assert not torch.allclose(one(IMAGES), whole, atol=1e-3)
    dropout = blurs.Dropout(0.1).eval()
    masks = torch.stack(
        [blurs.take(dropout, torch.ones(1, 64, 8, 8), sample) for sample in range(50)]
    )
    share = float((masks == 0).double().mean())
    assert share == pytest.approx(0.1, abs=0.005)
    assert float(masks.max()) == pytest.approx(1 / 0.9)
