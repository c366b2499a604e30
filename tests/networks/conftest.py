from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.checkpoints import NETWORK, network_weights, saved
from tests.helpers.hub import Hub, running_hub
from vitscope.networks.checkpoints.conversion import convert


@pytest.fixture
def converted(tmp_path: Path) -> Path:
    source = saved(tmp_path / "source.pth", {"state_dict": network_weights()})
    target = tmp_path / "out" / "resnet.safetensors"
    convert(source, NETWORK, target, label="ResNet", origin="https://host/source.pth")
    return target


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with running_hub(tmp_path / "cache", monkeypatch) as hub:
        yield hub
