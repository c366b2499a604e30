from collections.abc import Callable
from typing import Any

import pytest
import torch
from einops.layers.torch import Rearrange
from torch import Tensor, nn

from tests.helpers.kinds import timm
from tests.helpers.networks import described, mini
from tests.helpers.refusals import refusal
from vitscope.networks.attention.found_weights import first_projection_weights

# Filters of four rows and two columns, so that no two sides are taken for each other.
FILTERS = torch.randn(5, 3, 4, 2, generator=torch.Generator().manual_seed(0))
IMAGES = described(8)


def found(model: nn.Module) -> Tensor:
    return first_projection_weights(model, IMAGES).values


def convolution() -> nn.Conv2d:
    layer = nn.Conv2d(3, 5, (4, 2), (4, 2))
    layer.weight.data = FILTERS
    return layer


class Network(nn.Module):
    """Takes tokens or a map from some function of the images, and classifies their mean."""

    def __init__(self, take: nn.Module | Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.take, self.head = take, nn.Linear(5, 4)

    def forward(self, images: Tensor) -> Tensor:
        taken = self.take(images)
        channels = taken.movedim(1, -1) if taken.ndim == 4 else taken
        return self.head(channels.flatten(1, -2).mean(1))


@pytest.mark.parametrize("name", ["resnet", "vit", "pit", "swin", "alternet", "mixer"])
def test_of_every_family_it_is_the_first_convolution(name: str) -> None:
    model, _ = mini(name)
    first = next((n, m) for n, m in model.named_modules() if isinstance(m, nn.Conv2d))
    projection = first_projection_weights(model, described())
    assert projection.name == first[0]
    assert torch.equal(projection.values, first[1].weight)


def test_what_is_defined_before_and_runs_later_is_not_it() -> None:
    class Later(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.second, self.first = nn.Conv2d(5, 5, 3), convolution()

        def forward(self, images: Tensor) -> Tensor:
            return self.second(nn.functional.pad(self.first(images), (2, 2, 2, 2))).mean((2, 3))

    assert torch.equal(found(Later()), FILTERS)


@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("order", ["p1 p2 c", "c p1 p2", "p2 c p1"])
def test_a_linear_layer_on_patches_is_laid_out_as_these_are(order: str, norm: bool) -> None:
    patches = Rearrange(f"b c (h p1) (w p2) -> b (h w) ({order})", p1=4, p2=2)
    weight = Rearrange(f"o c p1 p2 -> o ({order})")(FILTERS)
    linear = nn.Linear(24, 5)
    linear.weight.data = weight
    between = nn.LayerNorm(24) if norm else nn.Identity()
    model = Network(nn.Sequential(patches, between, linear))
    torch.testing.assert_close(found(model), FILTERS, rtol=0, atol=0)
    assert first_projection_weights(model, IMAGES).name == "take.2"
    # It is the convolution, on images.
    if not norm:
        images = torch.randn(2, 3, 8, 8)
        linear.bias.data.zero_()
        maps = nn.functional.conv2d(images, found(model), stride=(4, 2))
        tokens = maps.flatten(2).transpose(1, 2)
        torch.testing.assert_close(model.take(images), tokens, rtol=1e-5, atol=1e-5)


def test_normalized_images_and_patches_by_views_with_a_matrix_on_either_side() -> None:
    weight, layer = FILTERS.permute(0, 2, 3, 1).flatten(1), convolution()

    def patches(images: Tensor) -> Tensor:
        cut = images.unfold(2, 4, 4).unfold(3, 2, 2)
        return cut.permute(0, 2, 3, 4, 5, 1).reshape(len(images), -1, 24)

    for take in (
        lambda images: layer(nn.functional.pad((images - 0.5) / 0.25, (2, 2, 2, 2))),
        lambda images: patches(images) @ weight.T,
        lambda images: (weight @ patches(images).mT).mT,
        lambda images: torch.einsum("oi,bli->blo", weight, patches(images)),
        lambda images: torch.bmm(patches(images), weight.T.expand(len(images), 24, 5)),
    ):
        assert torch.equal(found(Network(take)), FILTERS)


def test_a_linear_layer_on_whole_images_is_as_large_as_they_are() -> None:
    linear = nn.Linear(192, 4)
    filters = found(nn.Sequential(nn.Flatten(), linear))
    assert torch.equal(filters, linear.weight.view(4, 3, 8, 8))
    # On single pixels a filter has one.
    linear = nn.Linear(3, 5)
    filters = found(Network(lambda images: linear(images.permute(0, 2, 3, 1)).flatten(1, 2)))
    assert torch.equal(filters[:, :, 0, 0], linear.weight)


def test_weights_are_as_they_are_used() -> None:
    class Standardized(nn.Conv2d):
        def forward(self, images: Tensor) -> Tensor:
            weight = self.weight - self.weight.mean((1, 2, 3), keepdim=True)
            return self._conv_forward(images, weight, self.bias)

    layer = Standardized(3, 5, 4)
    layer.weight.data = FILTERS
    filters = found(Network(layer))
    torch.testing.assert_close(filters, FILTERS - FILTERS.mean((1, 2, 3), keepdim=True))


@pytest.mark.parametrize(
    ("take", "said"),
    [
        (lambda images: nn.functional.unfold(images, (4, 2), stride=(4, 2)).mT @ torch.ones(24, 5),
         "nothing tells which pixel"),
        (nn.ConvTranspose2d(3, 5, 2, 2), "convolution of another kind"),
        (lambda images: images.flatten(2).repeat(1, 2, 1)[:, :5].mT, "has no filters"),
    ],
)  # fmt: skip
def test_other_layers_are_refused(take: Any, said: str) -> None:
    model = Network(take)
    if said == "has no filters":
        model.head = nn.Identity()
    sentence = refusal(found, model)
    assert said in sentence
    assert "'take'" in sentence or "another kind" not in said


@pytest.mark.parametrize(
    ("name", "module"),
    [("resnet18", "conv1"), ("convnext_atto", "stem.0"), ("efficientnet_b0", "conv_stem")],
)
def test_networks_of_timm(name: str, module: str) -> None:
    model = timm(name)
    projection = first_projection_weights(model, described(64))
    assert projection.name == module
    assert torch.equal(projection.values, model.get_submodule(module).weight)


def test_a_linear_projection_of_timm_is_that_of_its_patches() -> None:
    model = timm("naflexvit_base_patch16_gap", embed_dim=12, depth=1, num_heads=3).eval()
    images = torch.randn(2, 3, 64, 64)
    filters = first_projection_weights(model, described(64)).values
    assert filters.shape == (12, 3, 16, 16)
    outputs: list[Tensor] = []
    # What is added to it is added in place.
    model.embeds.proj.register_forward_hook(lambda *args: outputs.append(args[-1].clone()))
    with torch.no_grad():
        model(images)
        expected = nn.functional.conv2d(images, filters, model.embeds.proj.bias, stride=16)
    torch.testing.assert_close(outputs[0], expected.flatten(2).mT, rtol=1e-4, atol=1e-5)
