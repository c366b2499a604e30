from pathlib import Path

import pytest

from tests.runs.copies import Workflow, copy_workflow


@pytest.fixture(scope="session")
def fresh(tmp_path_factory: pytest.TempPathFactory, studies: Path) -> Workflow:
    """A copy of the workflow in which nothing was made of the studies that tests share."""
    return copy_workflow(tmp_path_factory.mktemp("fresh") / "copy", studies)
