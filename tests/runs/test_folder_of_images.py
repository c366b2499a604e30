"""A folder of images whose names are in another order than the outputs: every page says so."""

from typing import Any

import pytest
import yaml

from tests.helpers.splits import SWAPPED, shapes, write_folder
from tests.runs.copies import REPOSITORY, Workflow, copy_workflow
from vitscope.files.tables import read_warnings

pytestmark = pytest.mark.nightly

MINI = yaml.safe_load((REPOSITORY / "config/studies/mini.yaml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Workflow, str]:
    """A study of the bundled ResNet on a folder in which two names were swapped, and its output."""
    place = tmp_path_factory.mktemp("folder")
    drawn = shapes(place / "drawn", 300)
    source = write_folder(drawn, place / "images", SWAPPED)
    (place / "names.txt").write_text("\n".join(drawn.classes))
    study: dict[str, Any] = {
        "title": "a folder of images",
        "device": "cpu",
        "data": {
            "own": {
                **MINI["data"]["shapes32"],
                "source": source,
                "class_names": str(place / "names.txt"),
                "splits": {"test": {}},
            }
        },
        "models": {"resnet": {**MINI["models"]["resnet"], "data": "own"}},
        "figures": {"reliability": {"kind": "reliability", "models": ["resnet"]}},
    }
    del study["models"]["resnet"]["training"]
    (place / "studies").mkdir()
    (place / "studies" / "own.yaml").write_text(yaml.safe_dump(study))
    workflow = copy_workflow(place / "copy", place / "studies")
    return workflow, workflow.make(
        "--cores", "2", "results/own/run.yaml", "figures/own/reliability.pdf"
    )


SENTENCE = "class 3 (meshed triangle) it is right about "


def test_the_log_says_which_class_is_which_and_what_is_doubted(run: tuple[Workflow, str]) -> None:
    workflow, output = run
    logs = workflow.root / "logs" / "own"
    split = next(logs.rglob("data/own/test.log")).read_text()
    assert "data.own.splits.test: classes: 0 striped disk (" in split
    said = next(logs.rglob("predictions/resnet/test.log")).read_text()
    assert said.startswith("vitscope: warning: resnet on the split 'test' of data.own: of ")
    assert SENTENCE in said
    assert said in output


@pytest.mark.parametrize(
    "table",
    [
        "predictions/resnet/test",
        "classification/resnet",
        "tables/classification",
        "tables/reliability",
    ],
)
def test_the_metadata_of_tables_tells_it(run: tuple[Workflow, str], table: str) -> None:
    (warning,) = read_warnings([run[0].root / f"results/own/{table}.parquet"])
    assert SENTENCE in warning


def test_the_report_tells_it(run: tuple[Workflow, str]) -> None:
    results = run[0].root / "results" / "own"
    for page in ("claims.md", "claims.html"):
        text = (results / "tables" / page).read_text(encoding="utf-8")
        assert "Warnings" in text
        assert SENTENCE in text
    record = yaml.safe_load((results / "run.yaml").read_text(encoding="utf-8"))
    classes = record["data"]["own/test"]["classes"]
    assert (classes[0], classes[3], len(classes)) == ("striped disk", "meshed triangle", 10)
    # The names themselves, not the file that they were read from.
    assert record["study"]["data"]["own"]["class_names"] == [*classes.values()]


def test_the_figure_says_which_class_is_which(run: tuple[Workflow, str]) -> None:
    pdf = (run[0].root / "figures/own/reliability.pdf").read_bytes()
    assert b"Classes of own: 0 striped disk, 1 checked ring" in pdf.replace(b"\\", b"")
