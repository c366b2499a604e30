import pytest

from tests.helpers.splits import splits_of_shapes
from tests.training.recipes import Splits


@pytest.fixture(scope="session")
def splits(tmp_path_factory: pytest.TempPathFactory) -> Splits:
    return splits_of_shapes(tmp_path_factory.mktemp("shapes32"), 90, 50)
