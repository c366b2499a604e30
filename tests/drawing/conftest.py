from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def style_file() -> Path:
    """The style of the project."""
    return Path(__file__).parents[2] / "resources" / "style.mplstyle"
