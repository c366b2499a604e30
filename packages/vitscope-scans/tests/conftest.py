"""The package is found as an installed one is, by its entry point, unless it is installed."""

import atexit
import shutil
import sys
import tempfile
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

PACKAGE = Path(__file__).parents[1]


def pytest_configure() -> None:
    if "scans" in entry_points(group="vitscope.measures").names:
        return
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    metadata = folder / "vitscope_scans.dist-info"
    metadata.mkdir()
    about = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (metadata / "METADATA").write_text(about, encoding="utf-8")
    entries = project["entry-points"]["vitscope.measures"].items()
    lines = ["[vitscope.measures]", *(f"{name} = {value}" for name, value in entries)]
    (metadata / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")
    sys.path[:0] = [str(PACKAGE), str(folder)]
