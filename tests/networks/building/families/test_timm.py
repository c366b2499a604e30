from pathlib import Path

import pytest
import torch

from tests.helpers.networks import build_empty, build_undrawn
from tests.helpers.processes import python
from tests.helpers.refusals import refusal
from vitscope.networks.building.families import timm
from vitscope.networks.building.family import prepare_family_arch
from vitscope.networks.building.networks import fill, find_family
from vitscope.networks.building.timm_import import import_timm

WHERE = "own.yaml: models.m.arch"
# Small ones of different kinds: convolutions, recurrence, windows, hybrids; with buffers that no
# checkpoint stores, and of sizes that no other divides.
SMALL = {
    "test_vit": 160,
    "test_efficientnet": 160,
    "test_byobnet": 160,
    "vit_small_patch16_rope_224": 64,
    "swinv2_cr_tiny_ns_224": 224,
    "sequencer2d_s": 64,
    "levit_128s": 224,
    "xcit_nano_12_p16_224": 64,
    "eva02_tiny_patch14_224": 56,
    "maxvit_rmlp_pico_rw_256": 64,
}


def test_the_sources_declare_the_names_that_timm_lists() -> None:
    names = import_timm().list_models()
    assert len(names) > 1000
    assert timm.registered_models() == set(names)


def test_a_name_that_is_right_costs_no_import() -> None:
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from vitscope.networks.building.family import prepare_family_arch\n"
        "for name in ('efficientnet_b0', 'resnet50.a1_in1k'):\n"
        "    print(prepare_family_arch('timm', {'name': name, 'drop_rate': 0.1}, Path(), ''))\n"
        "print('timm' in sys.modules, 'torch' in sys.modules)\n"
    )
    assert python(code).splitlines() == [
        "{'name': 'efficientnet_b0', 'drop_rate': 0.1}",
        "{'name': 'resnet50.a1_in1k', 'drop_rate': 0.1}",
        "False False",
    ]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("efficientnet_bO", ": timm has no model 'efficientnet_bO'. Did you mean 'efficientnet_b"),
        ("hf-hub:timm/resnet18", ": timm has no model 'hf-hub:timm/resnet18'."),
        ("resnet18.a1_in1kk", ": timm has no weights 'resnet18.a1_in1kk': leave out what is"),
        ("resnet18.", ": timm has no weights 'resnet18.': leave out what is behind the dot, or"),
        ("../resnet18", ": timm has no model '../resnet18'."),
        ("", ": timm has no model ''."),
    ],
)
def test_a_name_that_timm_lacks(name: str, message: str) -> None:
    sentence = refusal(prepare_family_arch, "timm", {"name": name}, Path(), WHERE)
    assert sentence.startswith(f"{WHERE}.name{message}")


def test_a_former_name_is_one_too() -> None:
    arch = prepare_family_arch("timm", {"name": "tf_efficientnet_b0_ns"}, Path(), WHERE)
    with pytest.warns(UserWarning, match="Mapping deprecated model name"):
        build_empty("timm", arch, 10, 32)


def test_keywords_and_what_the_data_say() -> None:
    family = find_family("timm")
    arch = {"name": "resnet18", "stem_width": 16, "replace_stem_pool": True}
    model = family.build(arch, num_classes=7, image_size=32, channels=1).eval()
    assert model(torch.zeros(1, 1, 32, 32)).shape == (1, 7)
    assert arch["name"] == "resnet18"
    # A network whose positions depend on the size is built for it.
    model = family.build({"name": "test_vit"}, num_classes=7, image_size=48, channels=1)
    assert model(torch.zeros(1, 1, 48, 48)).shape == (1, 7)


@pytest.mark.parametrize(("name", "size"), SMALL.items())
def test_an_undrawn_network_is_filled(name: str, size: int) -> None:
    """It is then the one whose weights it takes."""
    torch.manual_seed(0)
    built = find_family("timm").build({"name": name}, 10, size).eval()
    filled = fill(build_undrawn("timm", {"name": name}, 10, size), built.state_dict())
    for (one, buffer), (other, computed) in zip(
        built.named_buffers(), filled.named_buffers(), strict=True
    ):
        assert one == other
        assert torch.equal(buffer, computed), one
    images = torch.randn(1, 3, size, size)
    with torch.inference_mode():
        logits = built(images)
        assert torch.equal(filled(images), logits)
    assert logits.shape == (1, 10)
