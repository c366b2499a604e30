"""The documented way to add a family works as it stands."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from tests.helpers.networks import described
from vitscope.networks.building import families
from vitscope.networks.building.family import arch_schema, family_names, find_family, prepare
from vitscope.networks.finding.blocks import list_blocks
from vitscope.settings.section import check

DOCS = Path(__file__).parents[4] / "docs" / "families.md"


def fenced(language: str) -> list[str]:
    """Return the code blocks of a language in the page."""
    return re.findall(rf"```{language}\n(.*?)```", DOCS.read_text(), re.DOTALL)


def models() -> dict[str, dict[str, Any]]:
    """Return the models of the page."""
    return {
        name: entry
        for block in fenced("yaml")
        for name, entry in yaml.safe_load(block)["models"].items()
    }


@pytest.mark.parametrize("name", ["efficientnet", "ours"])
def test_the_examples_of_any_network_are_built(tmp_path: Path, name: str) -> None:
    (tmp_path / "my_net.py").write_text(
        "from torch import nn\n"
        "def resnet20(width, num_classes):\n"
        "    head = nn.Linear(width, num_classes)\n"
        "    return nn.Sequential(nn.Conv2d(3, width, 32), nn.Flatten(), head)\n"
    )
    entry = models()[name]
    family = entry["family"]
    check("own.yaml", entry["arch"], arch_schema(family))
    arch = prepare(family, entry["arch"], tmp_path, "own.yaml")
    model = find_family(family).build(arch, 10, 32).eval()
    assert model(torch.zeros(1, 3, 32, 32)).shape == (1, 10)


def test_the_example_is_a_family(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = fenced("python")
    assert len(code.splitlines()) < 40
    (tmp_path / "convformer.py").write_text(code)
    monkeypatch.setattr(families, "__path__", [*families.__path__, str(tmp_path)])
    monkeypatch.delitem(
        sys.modules, "vitscope.networks.building.families.convformer", raising=False
    )

    entry = models()["convformer"]
    assert "convformer" in family_names()
    check("own.yaml", entry["arch"], arch_schema("convformer"))
    family = find_family(entry["family"])
    torch.manual_seed(0)
    model = family.build(entry["arch"], num_classes=10, image_size=64).eval()
    table = list_blocks("convformer", model, described(64)).table

    mixed = ["conv", "mlp"]
    stages = [mixed * 3, ["pool", *mixed * 3], ["pool", *mixed * 9], ["pool", *mixed * 3]]
    assert table["kind"].tolist() == ["stem", *(kind for stage in stages for kind in stage)]
    assert table["height"].tolist() == [16] * 7 + [8] * 7 + [4] * 19 + [2] * 7


def test_every_family_is_in_the_table() -> None:
    assert re.findall(r"^\| `(\w+)` \|", DOCS.read_text(), re.MULTILINE) == [
        "resnet",
        "alternet",
        "preresnet",
        "vgg",
        "alexnet",
        "timm_resnet",
        "vit",
        "pit",
        "swin",
        "mixer",
        "convnext",
        "timm",
        "hf",
        "python",
    ]
    assert len(family_names()) == 14
