import importlib
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from tests.helpers.networks import build_empty, described
from tests.helpers.refusals import refusal
from vitscope.image_size import ImageSize
from vitscope.networks.building import families
from vitscope.networks.building.family import (
    arch_schema,
    family_names,
    module_of,
    prepare_family_arch,
)
from vitscope.networks.building.networks import find_family
from vitscope.networks.finding.blocks import list_blocks
from vitscope.networks.finding.search import search_for_cut_points
from vitscope.settings.faults import check_section, find_faults_of_section

# Those of the paper, each of which takes keys that are known, and those of any network.
CLOSED = {"alexnet", "alternet", "convnext", "hf", "mixer", "pit"}
CLOSED |= {"preresnet", "resnet", "swin", "timm_resnet", "vgg", "vit"}
FAMILIES = sorted(CLOSED | {"python", "timm"})


@pytest.mark.parametrize("name", FAMILIES)
def test_arch_schemas_are_what_the_module_holds(name: str) -> None:
    schema = arch_schema(name)
    assert [*find_faults_of_section(schema, {})]
    closed = [
        *find_faults_of_section(schema, {"name": "x", "make": "x", "file": "x", "unknown": 1})
    ]
    assert bool(closed) == (name in CLOSED)
    module = importlib.import_module(module_of(name))
    assert schema["properties"].keys() == module.ARCH["properties"].keys()


IMAGES = torch.zeros(2, 3, 32, 32, device="meta")

# As small as can be, for images of any number of channels.
ARCHS: dict[str, dict[str, Any]] = {
    "alexnet": {"stem": False, "width": 4, "hidden": 8},
    "alternet": {"depth": 18, "width": 4},
    "convnext": {"patch_size": 2, "depths": [1, 1, 1, 1], "dims": [4, 4, 4, 4]},
    "mixer": {"patch_size": 8, "num_blocks": 1, "embed_dim": 8},
    "pit": {"patch_size": 4, "stride": 4, "base_dims": [4], "depth": [1], "heads": [1]},
    "preresnet": {"depth": 18, "width": 4},
    "resnet": {"depth": 18, "width": 4},
    "swin": {"patch_size": 4, "window_size": 2, "embed_dim": 4, "depths": [1], "num_heads": [1]},
    "timm_resnet": {"block": "basic", "layers": [1, 1, 1, 1]},
    "vgg": {"depth": 11, "width": 2, "hidden": 8},
    "vit": {"patch_size": 8, "embed_dim": 6, "depth": 1, "num_heads": 2},
    "timm": {"name": "test_convnext"},
}


@pytest.mark.parametrize("name", ARCHS)
@pytest.mark.parametrize("size", [[32, 64], [96, 32]])
def test_networks_of_grey_images_and_of_those_that_are_not_square(
    name: str, size: list[int]
) -> None:
    model = find_family(name).build(ARCHS[name], 5, 32, channels=1).eval()
    assert model(torch.zeros(2, 1, 32, 32)).shape == (2, 5)
    model = find_family(name).build(ARCHS[name], 5, size).eval()
    assert model(torch.zeros(2, 3, *size)).shape == (2, 5)
    network = {"image_size": size, "mean": [0] * 3, "classes": 5}
    blocks = list_blocks(name, model, network).table
    if name in ("alexnet", "vgg"):
        # These classify a square, whatever the images are.
        blocks = blocks.iloc[:-1]
    # The same share of both sides is left everywhere.
    assert (blocks["height"] * size[1] == blocks["width"] * size[0]).all()
    assert blocks["height"].max() > 1


def test_an_unknown_family() -> None:
    for ask in (find_family, arch_schema):
        assert refusal(ask, "resnt") == (
            f"There is no model family 'resnt'; there are {', '.join(FAMILIES)}. "
            "Did you mean 'resnet'?"
        )


VIT = {"patch_size": 4, "embed_dim": 10, "depth": 1, "num_heads": 3}
ALTERNET = {"block": "basic", "blocks": [1, 2, 4, 3], "attention": [0, 1, 2, 1], "window": 2}
WIDE = [64, 96]
NO_NETWORK = "No network can be built from arch {"
OF_DATA = ("num_classes", "img_size")
OF_WEIGHTS = ("pretrained", "checkpoint_path", "pretrained_cfg_overlay")
NO_WINDOWS = "the maps of stage {} do not divide into windows"


@pytest.mark.parametrize(
    ("family", "arch", "size", "sentence"),
    [
        ("vit", {"name": "vit_tiny_patch16_22"}, 32, "timm has no model 'vit_tiny_patch16_22'. D"),
        ("vit", {"name": "resnet18"}, 32, "model 'resnet18' of timm is a ResNet and not a Vision"),
        ("vit", VIT, 32, f"{NO_NETWORK}'patch_size': 4, 'embed_dim': 10, "),
        ("vit", {"name": "vit_tiny_patch16_224.nowhere"}, 32, NO_NETWORK),
        ("swin", {"name": "swinv2_tiny_window8_256"}, 32, "TransformerV2 and not a SwinTransform"),
        ("timm", {"name": "resnet18", "quux": 1}, 32, f"{NO_NETWORK}'name': "),
        ("timm", {"name": "resnet18", "quux": 1}, 32, "an unexpected keyword argument 'quux'."),
        ("timm", {"name": "test_vit", "embed_dim": 7}, 32, "for 10 classes and 32x32 images: "),
        ("timm", {"name": "nest_tiny"}, WIDE, "64x96 images (some networks take squares alone): "),
        ("alternet", ARCHS["alternet"] | {"window": 8}, WIDE, NO_WINDOWS.format(4)),
        ("alternet", ALTERNET | {"window": 3}, 32, NO_WINDOWS.format(2)),
        ("alternet", ALTERNET | {"stem": True}, 32, NO_WINDOWS.format(4)),
        ("alternet", ALTERNET | {"attention": [0, 2, 2, 1]}, 32, "blocks of stage 2 can attend"),
    ],
)
def test_an_arch_that_cannot_be(
    family: str, arch: dict[str, Any], size: ImageSize, sentence: str
) -> None:
    with torch.device("meta"):
        assert sentence in refusal(find_family(family).build, arch, 10, size)


@pytest.mark.parametrize(
    ("family", "arch", "sentence"),
    [
        (
            "vit",
            {"name": "vit_tiny_patch16_224", "attention_window": 3},
            "found {'name': 'vit_tiny_patch16_224', 'attention_window': 3}, allowed: "
            "`attention_window`, `mixing` and `class_token` beside the dimensions of a network, "
            "and not beside its name.",
        ),
        ("vit", {"name": "vit_tiny", "class_token": False}, " and not beside its name."),
        ("vit", {"attention_window": 0}, "found 0, allowed: a number from 1 on."),
        ("vit", {"attention_window": 2.5}, "found 2.5, allowed: a whole number."),
        ("hf", {}, "found none of these keys, allowed: exactly one of 'repository' or 'folder'."),
        (
            "hf",
            {"repository": "owner/name", "folder": "a"},
            "found 'repository' and 'folder', allowed: exactly one of 'repository' or 'folder'.",
        ),
        *(
            (
                "timm",
                {"name": "resnet18", key: 1},
                f"found '{key}', allowed: keywords of the model, which say neither data nor "
                "weights.",
            )
            for key in OF_DATA + OF_WEIGHTS
        ),
    ],
)
def test_an_arch_that_no_study_may_have(family: str, arch: dict[str, Any], sentence: str) -> None:
    dimensions = ARCHS["vit"] if family == "vit" and "name" not in arch else {}
    said = refusal(
        check_section, "own.yaml", dimensions | arch, arch_schema(family), within=("arch",)
    )
    assert said.startswith("own.yaml: arch")
    assert said.endswith(sentence)


@pytest.mark.parametrize(
    ("family", "name", "image_size", "cut_points"),
    [
        ("mixer", "mixer_s16_224", 32, 17),
        # A convolutional network embeds its patches.
        ("vit", "vit_small_resnet26d_224", 64, 25),
        # Two attentions, and then two MLPs, join the stream at once.
        ("vit", "vit_small_patch16_18x2_224", 32, 37),
    ],
)
def test_models_of_timm_by_name(family: str, name: str, image_size: int, cut_points: int) -> None:
    """Others are with the cut points that people wrote for them."""
    model = build_empty(family, {"name": name}, 10, image_size)
    points = list_blocks(name, model, described(image_size)).points
    assert len(points) == cut_points


# As widely reported for these networks on CIFAR-100; the golden values confirm the third.
@pytest.mark.parametrize(
    ("depth", "parameters"),
    [(18, 11_220_132), (34, 21_328_292), (50, 23_705_252), (101, 42_697_380)],
)
def test_published_depths_of_resnets(depth: int, parameters: int) -> None:
    with torch.device("meta"):
        model = find_family("resnet").build({"depth": depth}, num_classes=100, image_size=32)
    assert sum(parameter.numel() for parameter in model.parameters()) == parameters


@pytest.mark.parametrize(
    ("depth", "blocks", "attending"),
    [(18, 8, 3), (34, 17, 6), (50, 17, 6), (101, 34, 6), (152, 51, 6)],
)
def test_alternets(depth: int, blocks: int, attending: int) -> None:
    family = find_family("alternet")
    with torch.device("meta"):
        model = family.build({"depth": depth}, num_classes=10, image_size=32)
    kinds = [point.kind for point in search_for_cut_points(model, IMAGES).points]
    assert kinds[0] == "stem"
    assert kinds.count("msa") == attending
    assert len(kinds) == blocks + 1
    # Every stage that attends ends with attention.
    assert kinds[-1] == "msa"


DOCS = Path(__file__).parents[4] / "docs" / "families.md"


def fenced(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", DOCS.read_text(), re.DOTALL)


def models() -> dict[str, dict[str, Any]]:
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
    check_section("own.yaml", entry["arch"], arch_schema(family))
    arch = prepare_family_arch(family, entry["arch"], tmp_path, "own.yaml")
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
    check_section("own.yaml", entry["arch"], arch_schema("convformer"))
    family = find_family(entry["family"])
    torch.manual_seed(0)
    model = family.build(entry["arch"], num_classes=10, image_size=64).eval()
    table = list_blocks("convformer", model, described(64)).table

    mixed = ["conv", "mlp"]
    stages = [mixed * 3, ["pool", *mixed * 3], ["pool", *mixed * 9], ["pool", *mixed * 3]]
    assert table["kind"].tolist() == ["stem", *(kind for stage in stages for kind in stage)]
    assert table["height"].tolist() == [16] * 7 + [8] * 7 + [4] * 19 + [2] * 7


def test_every_family_is_in_the_table() -> None:
    of_paper = ["resnet", "alternet", "preresnet", "vgg", "alexnet", "timm_resnet", "vit", "pit"]
    others = ["swin", "mixer", "convnext", "timm", "hf", "python"]
    listed = re.findall(r"^\| `(\w+)` \|", DOCS.read_text(), re.MULTILINE)
    assert listed == [*of_paper, *others]
    assert sorted(listed) == family_names() == FAMILIES
