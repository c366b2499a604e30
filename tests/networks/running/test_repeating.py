"""Networks whose passes differ are told: by noise, dropout, or what is beside an image."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from tests.scopes.networks import CHANNELS, Convolutions, Transformer, network
from vitscope.errors import VitscopeError
from vitscope.networks.building.timm_import import import_timm
from vitscope.networks.running.predictions import refuse_unrepeatable, why_unrepeatable

IMAGE = torch.randn(1, 3, 16, 16, generator=torch.Generator().manual_seed(0))


class Noise(Convolutions):
    """Adds noise to images, in evaluation as well, or the same each time."""

    seed: int | None = None

    def forward(self, images: Tensor) -> Tensor:
        chance = torch.Generator()
        chance.seed() if self.seed is None else chance.manual_seed(self.seed)
        return super().forward(images + 0.01 * torch.randn(images.shape, generator=chance))


class Dropped(Convolutions):
    def forward(self, images: Tensor) -> Tensor:
        maps = self.branches[0](self.stem(images))
        return self.head(nn.functional.dropout(maps).mean((2, 3)))


def by_batch() -> nn.Module:
    model = network(Convolutions)
    model.branches[1][1] = nn.BatchNorm2d(CHANNELS, track_running_stats=False)
    return model


class Centred(Convolutions):
    def forward(self, images: Tensor) -> Tensor:
        return super().forward(images - images.mean())


OF_ONE_DRAW: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "noise": (lambda: network(Noise), "two passes .* from the module 'stem' on: noise"),
    "dropout": (lambda: network(Dropped), "two passes .* from the module 'head' on: noise"),
    "normalized by batches": (by_batch, r"images beside it, by branches\.1\.1, which has no"),
    "centred by batches": (lambda: network(Centred), "on the images beside it: all numbers"),
}


@pytest.mark.parametrize("kind", OF_ONE_DRAW)
def test_passes_that_differ_are_told(kind: str) -> None:
    build, sentence = OF_ONE_DRAW[kind]
    model, before = build().eval(), torch.get_rng_state()
    with pytest.raises(VitscopeError, match=sentence):
        refuse_unrepeatable(model, {"mean": [0.5] * 3, "image_size": 16}, torch.device("cpu"))
    assert why_unrepeatable(model, IMAGE)
    assert torch.equal(torch.get_rng_state(), before)
    assert not any(module._forward_hooks for module in model.modules())


def seeded() -> nn.Module:
    model = network(Noise)
    model.seed = 3
    return model


@pytest.mark.parametrize(
    "build",
    [
        seeded,
        lambda: network(Convolutions),
        lambda: network(Transformer),
        lambda: network(Convolutions).half(),
        lambda: import_timm().create_model("test_vit", img_size=16, patch_size=4, drop_rate=0.5),
    ],
)
def test_passes_that_are_alike(build: Callable[[], nn.Module]) -> None:
    model = build().eval()
    kind = next(model.parameters()).dtype
    assert why_unrepeatable(model, IMAGE.to(kind)) is None
