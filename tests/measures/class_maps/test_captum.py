"""Both CAMs against captum, which is downloaded: for a CNN, and for a ViT with its tokens as maps.

captum takes maps for (N, C, H, W). So in a ViT its maps are those of a module that passes the
tokens behind the class token on as such, put where vitscope reads.
"""

from importlib import import_module
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.helpers.attending import sharpened
from tests.helpers.networks import mini
from tests.helpers.registries import Packages, importing_from
from tests.helpers.splits import on_model
from vitscope.data.split import Split
from vitscope.measures.class_maps.compute import Explainer

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def attr(packages: Packages) -> Any:
    with importing_from(packages.unpacked("captum==0.9.0")):
        return import_module("captum.attr")


def tokens_as_map(block: nn.Module, prefix: int) -> nn.Module:
    """Return a module that the tokens of a block's output pass as a map, and do not change in."""
    place = nn.Identity()

    def through_place(_: nn.Module, __: Any, tokens: Tensor) -> Tensor:
        side = int((tokens.shape[1] - prefix) ** 0.5)
        maps = place(tokens[:, prefix:].transpose(1, 2).unflatten(2, (side, side)))
        return torch.cat([tokens[:, :prefix], maps.flatten(2).transpose(1, 2)], 1)

    block.register_forward_hook(through_place)
    return place


# A network, the cut point to read, the module of its maps, and how many tokens stand before those.
PLACES = [
    ("resnet", "layer4.1", "layer4.1", None),
    ("resnet", "layer2.0", "layer2.0", None),
    ("vit_global", "blocks.2.mlp", "blocks.2", 1),
    ("vit_global", "blocks.0.mlp", "blocks.0", 1),
    ("vit_gap", "blocks.3.mlp", "blocks.3", 0),
]


@pytest.mark.parametrize("of_class", [None, 3])
@pytest.mark.parametrize(("name", "point", "module", "prefix"), PLACES)
def test_maps_are_those_of_captum(
    attr: Any,
    images: Split,
    name: str,
    point: str,
    module: str,
    prefix: int | None,
    of_class: int | None,
) -> None:
    """To 1e-12 of the largest value, in double precision; in single precision it is 1e-5."""
    model, points = mini(name)
    sharpened(model.double())
    shown = torch.randn(4, 1, 3, 32, 32, generator=torch.Generator().manual_seed(0)).double()
    explainer = Explainer(on_model(model, images, cut_points=points), point, of_class)
    explained = [explainer.explain(image) for image in shown]
    place = model.get_submodule(module)
    place = place if prefix is None else tokens_as_map(place, prefix)
    for image, (_, number, maps) in zip(shown.requires_grad_(), explained, strict=True):
        with torch.enable_grad():
            assert number == (int(model(image).argmax()) if of_class is None else of_class)
            grad_cam = attr.LayerGradCam(model, place).attribute(
                image, number, relu_attributions=True
            )
            terms = attr.LayerGradientXActivation(model, place).attribute(image, number)
            values = attr.LayerActivation(model, place).attribute(image)
        # captum has no LayerCAM: its sum is that of the terms whose gradient is positive, and these
        # have the sign of the value.
        layer_cam = torch.where(terms * values > 0, terms, 0).sum(1, keepdim=True).relu()
        ours = {each.method: each.values for each in maps}
        for method, theirs in {"grad_cam": grad_cam, "layer_cam": layer_cam}.items():
            expected = (theirs / theirs.max())[0, 0].detach()
            torch.testing.assert_close(ours[method], expected, rtol=0, atol=1e-12)
