"""A converted checkpoint."""

from pathlib import Path

import pytest

from tests.helpers.checkpoints import NETWORK, network_weights, saved
from vitscope.networks.checkpoints.conversion import convert


@pytest.fixture
def converted(tmp_path: Path) -> Path:
    source = saved(tmp_path / "source.pth", {"state_dict": network_weights()})
    target = tmp_path / "out" / "resnet.safetensors"
    convert(source, NETWORK, target, label="ResNet", origin="https://host/source.pth")
    return target
