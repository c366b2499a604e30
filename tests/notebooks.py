"""Run the notebooks, in the order in which they are read; `make notebooks` writes what they show.

They are run in a folder of their own, by this Python, with the vitscope of this clone.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import nbformat
from jupyter_client.kernelspec import KernelSpec
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "notebooks"
# The third writes a study, and the fourth reads what has become of it.
NAMES = (
    "look_at_a_network",
    "your_own_network",
    "from_notebook_to_cluster",
    "reading_the_tables_of_a_study",
    "what_features_hold",
)
SETTINGS = {
    "PYTHONPATH": str(ROOT),
    "PYTHONDONTWRITEBYTECODE": "1",
    # Figures and last digits are the same on few cores and on many.
    "OMP_NUM_THREADS": "1",
    "TQDM_DISABLE": "1",
    "HF_HUB_OFFLINE": "1",
}
OWN_FOLDERS = ("IPYTHONDIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR")
SECONDS_PER_CELL = 120
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def path_of(name: str) -> Path:
    return FOLDER / f"{name}.ipynb"


def run(name: str, folder: Path) -> Any:
    """Run a notebook in a folder; return it with what it shows. A cell that fails is raised."""
    notebook = nbformat.read(path_of(name), as_version=4)
    work, own = folder / "work", folder / "jupyter"
    work.mkdir(exist_ok=True)
    client = NotebookClient(
        notebook,
        resources={"metadata": {"path": str(work)}},
        timeout=SECONDS_PER_CELL,
        record_timing=False,
        # Where what is printed breaks depends on how busy the machine is.
        coalesce_streams=True,
    )
    # Kernels are kept away from the folders of the user.
    with patch.dict(os.environ, SETTINGS | {name: str(own) for name in OWN_FOLDERS}):
        manager = client.create_kernel_manager()
        # The kernel of this environment, whatever others are called `python3`.
        command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        manager._kernel_spec = KernelSpec(argv=command, display_name="", language="python")
        manager.transport, manager.ip = "ipc", str(own / "socket")
        client.execute()
    notebook.metadata = nbformat.from_dict(METADATA)
    return notebook


def shown(notebook: Any) -> Iterator[tuple[int, str, bool]]:
    """Yield of each output its cell, its text, and whether it has a picture."""
    for number, cell in enumerate(notebook.cells):
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            yield number, output.get("text", data.get("text/plain", "")), "image/png" in data


def write() -> None:
    with TemporaryDirectory(prefix="vitscope-") as folder:
        for name in NAMES:
            print(name, flush=True)
            nbformat.write(run(name, Path(folder)), path_of(name))


if __name__ == "__main__":
    write()
