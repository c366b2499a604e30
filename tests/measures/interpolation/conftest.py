"""What lines and planes between networks are measured on."""

import numpy as np
import pytest

from tests.helpers.augmented import augmented
from tests.helpers.splits import shapes
from vitscope.data.split import Split
from vitscope.training.batches import AugmentedImages

IMAGES = 40


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> Split:
    return shapes(tmp_path_factory.mktemp("split") / "test", IMAGES)


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> AugmentedImages:
    """Twenty images: two batches of seven, and six that are left out."""
    images = np.random.default_rng(0).normal(size=(20, 3, 32, 32))
    return augmented(tmp_path_factory.mktemp("training") / "a", images, np.ones((20, 10)) / 10)
