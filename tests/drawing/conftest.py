from pathlib import Path

import pytest

from vitscope.package_data import STYLE


@pytest.fixture(scope="session")
def style_file() -> Path:
    """The style of the project."""
    return STYLE
