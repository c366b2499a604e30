"""What tests of several parts share."""

import os
from pathlib import Path

import pytest
import torch

from tests.helpers.golden import Golden


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put what takes longest first, so that two processes end at about the same time."""
    items.sort(key=lambda item: ("test_golden_study" not in item.nodeid, not _is_long(item)))


def _is_long(item: pytest.Item) -> bool:
    return item.get_closest_marker("workflow") is not None


@pytest.fixture(scope="session")
def shared() -> Path:
    """Golden values and real data, beside the repository or where VITSCOPE_SHARED says."""
    return Path(os.environ.get("VITSCOPE_SHARED", Path(__file__).parents[2] / "shared"))


@pytest.fixture(scope="session")
def golden(shared: Path) -> Golden:
    """The golden values, and the weights that they are of."""
    if not (shared / "golden").is_dir():
        pytest.skip(f"needs the golden values, in {shared} or where VITSCOPE_SHARED says")
    return Golden(shared)


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)
