from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.helpers.splits import SWAPPED, shapes, write_folder
from tests.helpers.studies import bundled
from tests.runs.copies import with_study
from vitscope.files.tables import read_warnings

pytestmark = pytest.mark.nightly

SENTENCE = "class 3 (meshed triangle) it is right about "


def test_every_page_says_which_class_is_which_and_what_is_doubted(tmp_path: Path) -> None:
    """A study of the bundled ResNet on a folder in which two names were swapped."""
    drawn = shapes(tmp_path / "drawn", 300)
    source = write_folder(drawn, tmp_path / "images", SWAPPED)
    (tmp_path / "names.txt").write_text("\n".join(drawn.classes))
    own = {"source": source, "class_names": str(tmp_path / "names.txt"), "splits": {"test": {}}}
    mini = bundled("mini")
    resnet = mini["models"]["resnet"] | {"data": "own"}
    study: dict[str, Any] = {
        "title": "a folder of images",
        "device": "cpu",
        "data": {"own": mini["data"]["shapes32"] | own},
        "models": {"resnet": {key: resnet[key] for key in resnet if key != "training"}},
        "figures": {"reliability": {"kind": "reliability", "models": ["resnet"]}},
    }
    workflow = with_study(tmp_path, "own", study)
    targets = ("results/own/run.yaml", "figures/own/reliability.pdf")
    output = workflow.make("--cores", "2", *targets)

    logs, results = workflow.root / "logs" / "own", workflow.root / "results" / "own"
    split = next(logs.rglob("data/own/test.log")).read_text()
    assert "data.own.splits.test: classes: 0 striped disk (" in split
    said = next(logs.rglob("predictions/resnet/test.log")).read_text()
    assert said.startswith("vitscope: warning: resnet on the split 'test' of data.own: of ")
    assert SENTENCE in said
    assert said in output
    for table in ("predictions/resnet/test", "classification/resnet", "tables/reliability"):
        (warning,) = read_warnings([results / f"{table}.parquet"])
        assert SENTENCE in warning
    for page in ("claims.md", "claims.html"):
        assert SENTENCE in (results / "tables" / page).read_text(encoding="utf-8")
    record = yaml.safe_load((results / "run.yaml").read_text(encoding="utf-8"))
    classes = record["data"]["own/test"]["classes"]
    assert (classes[0], classes[3], len(classes)) == ("striped disk", "meshed triangle", 10)
    # The names themselves, not the file that they were read from.
    assert record["study"]["data"]["own"]["class_names"] == [*classes.values()]
    pdf = (workflow.root / "figures/own/reliability.pdf").read_bytes()
    assert b"Classes of own: 0 striped disk, 1 checked ring" in pdf.replace(b"\\", b"")
