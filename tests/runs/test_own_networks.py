"""A network of the user's own in a run: its code decides what runs again."""

from pathlib import Path
from typing import Any

import pytest
import safetensors.torch

from tests.runs.copies import Workflow, edited, write_study

NET = """
from torch import nn
from {name}_parts import head

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 10, 4, 4)

    def forward(self, x):
        return head(self.stem(x))

def net():
    return Net()
"""
PARTS = """
def head(x):
    return x.mean((2, 3))
"""
CONVERTED = {name: f"results/own/checkpoints/{name}.safetensors" for name in ("one", "two")}


def write_networks(folder: Path) -> None:
    """Write a study of two networks, each of a file and of one that it imports."""

    def change(settings: dict[str, Any]) -> None:
        model = {"family": "python", "data": "shapes32", "checkpoint": {"made": True}}
        settings["models"] = {
            name: model | {"arch": {"file": f"nets/{name}.py", "make": "net"}} for name in CONVERTED
        }
        settings["figures"] = {"fig9": {"kind": "feature_variance", "models": [*CONVERTED]}}

    write_study(folder / "own.yaml", change)
    (folder / "nets").mkdir()
    for name in CONVERTED:
        (folder / "nets" / f"{name}.py").write_text(NET.format(name=name))
        (folder / "nets" / f"{name}_parts.py").write_text(PARTS)


@pytest.fixture
def workflow(fresh: Workflow, tmp_path: Path) -> Workflow:
    write_networks(tmp_path)
    return Workflow(fresh.root, tmp_path)


def test_code_decides_what_is_made_again(workflow: Workflow) -> None:
    workflow.make(*CONVERTED.values())
    weights = safetensors.torch.load_file(workflow.root / CONVERTED["one"])
    assert weights["stem.weight"].shape == (10, 3, 4, 4)
    folder = workflow.studies / "nets"
    # A new date, and a file that no network imports, change nothing.
    (folder / "two_parts.py").touch()
    (folder / "another.py").write_text("")
    with edited(folder / "one_parts.py", lambda text: text + "# another\n"):
        assert workflow.plan(*CONVERTED.values()) == {"convert_checkpoint": 1}


@pytest.mark.nightly
def test_code_that_fails_is_named_by_its_line(workflow: Workflow) -> None:
    parts = workflow.studies / "nets" / "one_parts.py"
    with edited(parts, lambda text: text.replace("(2, 3)", "(2, 7)")):
        code, output = workflow.run("results/own/blocks/one.parquet")
    assert code != 0
    (sentence,) = [line for line in output.splitlines() if line.startswith("vitscope: ")]
    assert sentence.startswith("vitscope: the module (Net) of the network fails at ")
    assert f"{parts}, line 3: IndexError: Dimension out of range" in sentence
    assert output.endswith(f"{sentence}\n")
    assert "Traceback" not in output
