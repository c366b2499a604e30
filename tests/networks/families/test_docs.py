"""The documented way to add a family works as it stands."""

import re
import sys
from pathlib import Path

import pytest
import torch
import yaml
from jsonschema import Draft202012Validator

from vitscope.networks import families
from vitscope.networks.blocks import block_table
from vitscope.networks.family import arch_schema, family_names, find_family

DOCS = Path(__file__).parents[3] / "docs" / "families.md"


def fenced(language: str) -> str:
    """Return the one code block of a language in the page."""
    (block,) = re.findall(rf"```{language}\n(.*?)```", DOCS.read_text(), re.DOTALL)
    return block


def test_the_example_is_a_family(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = fenced("python")
    assert len(code.splitlines()) < 40
    (tmp_path / "convformer.py").write_text(code)
    monkeypatch.setattr(families, "__path__", [*families.__path__, str(tmp_path)])
    monkeypatch.delitem(sys.modules, "vitscope.networks.families.convformer", raising=False)

    entry = yaml.safe_load(fenced("yaml"))["models"]["convformer"]
    assert "convformer" in family_names()
    Draft202012Validator(arch_schema("convformer")).validate(entry["arch"])
    family = find_family(entry["family"])
    torch.manual_seed(0)
    model = family.build(entry["arch"], num_classes=10, image_size=64).eval()
    table = block_table("convformer", model, family.cut_points(model), image_size=64)

    assert len(table) == 1 + 2 * (3 + 3 + 9 + 3)
    assert table["kind"].tolist() == ["stem", *["conv", "mlp"] * 18]
    assert table["height"].tolist() == [16] * 7 + [8] * 6 + [4] * 18 + [2] * 6


def test_every_family_is_in_the_table() -> None:
    assert re.findall(r"^\| `(\w+)` \|", DOCS.read_text(), re.MULTILINE) == [
        "resnet",
        "alternet",
        "timm_resnet",
        "vit",
        "pit",
        "swin",
        "mixer",
        "convnext",
    ]
    assert len(family_names()) == 8
