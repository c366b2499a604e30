import re
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest

from tests import notebooks
from tests.helpers.tiers import some_of

NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?!\w)")
# Of places on the machine where it was run.
PLACE = re.compile(r"(?<![\w.])/(home|root|tmp|usr|var|work|Users)/|[A-Z]:\\")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for all, since the last reads what the one before has made."""
    return tmp_path_factory.mktemp("notebooks")


def committed(name: str) -> Any:
    return nbformat.read(notebooks.path_of(name), as_version=4)


def split(text: str) -> tuple[str, list[float]]:
    """Return a text without its numbers and what aligns them, and the numbers."""
    # A measure that is added is one more of those that are listed.
    text = re.sub(r"; tables: .*>", ">", text)
    words = " ".join(NUMBER.sub("#", text).split())
    return words, [float(number) for number in NUMBER.findall(text)]


def test_every_notebook_is_listed() -> None:
    assert {path.stem for path in notebooks.FOLDER.glob("*.ipynb")} == {*notebooks.NAMES}
    contents = (notebooks.FOLDER / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"\]\((\w+)\.ipynb\)", contents) == [*notebooks.NAMES]


# The quickest with every change; all of them take a minute of two cores.
@pytest.mark.others
@pytest.mark.parametrize("name", some_of(notebooks.NAMES, "your_own_network"))
def test_it_shows_what_is_committed(name: str, folder: Path) -> None:
    expected, found = committed(name), notebooks.run(name, folder)
    shown, now = list(notebooks.shown(expected)), list(notebooks.shown(found))
    assert [(cell, picture) for cell, _, picture in now] == [
        (cell, picture) for cell, _, picture in shown
    ]
    for (cell, was, _), (_, is_now, _) in zip(shown, now, strict=True):
        words, numbers = split(was)
        words_now, numbers_now = split(is_now)
        assert words_now == words, f"cell {cell}: run `make notebooks`"
        # The order of additions changes at most the last digit that is shown.
        assert np.allclose(numbers_now, numbers, rtol=0.02, atol=0.002), f"cell {cell}: {is_now}"


@pytest.mark.parametrize("name", notebooks.NAMES)
def test_what_is_committed_is_of_no_machine_and_small(name: str) -> None:
    notebook = committed(name)
    nbformat.validate(notebook)
    assert notebook.metadata == notebooks.METADATA
    assert notebooks.path_of(name).stat().st_size < 300_000
    for cell, text, has_picture in notebooks.shown(notebook):
        assert not PLACE.search(text), f"cell {cell}"
        assert has_picture or not text.startswith("<Figure"), f"cell {cell}"
    for cell in notebook.cells:
        assert cell.metadata == {}
        assert not PLACE.search(cell.source)
        names = {output.get("name") for output in cell.get("outputs", ())}
        assert "stderr" not in names


@pytest.mark.parametrize("name", notebooks.NAMES)
def test_links_lead_somewhere(name: str) -> None:
    text = "\n".join(cell.source for cell in committed(name).cells if cell.cell_type == "markdown")
    for target in re.findall(r"\]\((?!https?:)([^)#\s]+)", text):
        assert (notebooks.FOLDER / target).exists(), target
