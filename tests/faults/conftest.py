import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

Mount = Callable[..., None]


@pytest.fixture
def mount() -> Iterator[Mount]:
    """Mount something on a folder until the test is over; skip where that is not allowed."""
    mounted: list[Path] = []

    def run(folder: Path, *options: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            subprocess.run(["mount", *options, str(folder)], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            pytest.skip("needs the right to mount file systems")
        if folder not in mounted:
            mounted.append(folder)

    yield run
    for folder in reversed(mounted):
        subprocess.run(["umount", str(folder)], check=False)
