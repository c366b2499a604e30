import pytest

from tests.helpers.splits import splits_of_shapes
from vitscope.data.split import Split


@pytest.fixture(scope="session")
def splits(tmp_path_factory: pytest.TempPathFactory) -> tuple[Split, Split]:
    return splits_of_shapes(tmp_path_factory.mktemp("shapes32"), 90, 50)
