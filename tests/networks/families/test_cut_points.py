"""What holds for the cut points of every family, on small members."""

from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from vitscope.networks import empty as models
from vitscope.networks.capture import capturing
from vitscope.networks.cut_points import CutPoint
from vitscope.networks.family import family_names, find_family

# Each with its number of cut points.
ARCHS: dict[str, tuple[dict[str, Any], int]] = {
    "resnet": ({"block": "bottleneck", "blocks": [2, 3, 1, 2], "width": 4}, 9),
    "resnet basic": ({"block": "basic", "blocks": [2, 1, 1, 2], "width": 4}, 7),
    "alternet": (
        {
            "block": "bottleneck",
            "blocks": [2, 2, 4, 2],
            "attention": [0, 1, 2, 1],
            "heads": [1, 2, 2, 2],
            "head_dim": 4,
            "width": 4,
        },
        11,
    ),
    "timm_resnet": ({"block": "bottleneck", "layers": [2, 1, 2, 1]}, 7),
    "timm_resnet basic": ({"block": "basic", "layers": [1, 2, 1, 1]}, 6),
    "vit": ({"patch_size": 8, "embed_dim": 12, "depth": 3, "num_heads": 3}, 7),
    "pit": (
        {
            "patch_size": 4,
            "stride": 3,
            "base_dims": [4, 4, 4],
            "depth": [1, 2, 1],
            "heads": [1, 2, 4],
        },
        11,
    ),
    "swin": (
        {
            "patch_size": 2,
            "window_size": 4,
            "embed_dim": 4,
            "depths": [2, 1, 2],
            "num_heads": [1, 2, 2],
        },
        13,
    ),
    "mixer": ({"patch_size": 8, "num_blocks": 3, "embed_dim": 8}, 7),
    "convnext": ({"patch_size": 2, "depths": [1, 2, 1, 1], "dims": [4, 8, 8, 12]}, 10),
}
Built = tuple[nn.Module, list[CutPoint]]


@pytest.fixture(scope="module", params=ARCHS)
def built(request: pytest.FixtureRequest) -> Built:
    family = find_family(request.param.split()[0])
    torch.manual_seed(0)
    model = family.build(ARCHS[request.param][0], num_classes=5, image_size=32).eval()
    cut_points = family.cut_points(model)
    assert len(cut_points) == ARCHS[request.param][1]
    # The last normalization of a block starts at zero in timm's ResNets, which would hide a branch.
    for parameter in model.parameters():
        if parameter.ndim == 1:
            nn.init.uniform_(parameter, 0.5, 1.5)
    return model, cut_points


def read(model: nn.Module, cut_points: list[CutPoint]) -> tuple[Tensor, list[Tensor]]:
    """Return the logits of fixed images, and the stream at every cut point."""
    stream: list[Tensor] = []
    images = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(1))
    with capturing(model, cut_points, lambda _, latent: stream.append(latent)), torch.no_grad():
        logits = model(images)
    return logits, stream


def test_every_family_is_here() -> None:
    assert {name.split()[0] for name in ARCHS} == set(family_names()) - {"python", "timm"}


def test_names_are_unique_and_the_stem_is_first(built: Built) -> None:
    _, cut_points = built
    assert len({point.name for point in cut_points}) == len(cut_points)
    assert [point.kind == "stem" for point in cut_points] == [True] + [False] * (
        len(cut_points) - 1
    )
    stages = [point.stage for point in cut_points]
    assert stages == sorted(stages)


@pytest.mark.parametrize("training", [False, True])
def test_reading_leaves_the_logits_as_they_are(built: Built, training: bool) -> None:
    model, cut_points = built
    model.train(training)
    with torch.random.fork_rng():
        torch.manual_seed(2)
        plain, _ = read(model, [])
        torch.manual_seed(2)
        logits, _ = read(model, cut_points)
    model.eval()
    assert torch.equal(plain, logits)


def test_cut_points_come_in_order_as_maps(built: Built) -> None:
    model, cut_points = built
    order: list[int] = []

    def note(index: int, latent: Tensor) -> None:
        order.append(index)
        assert latent.ndim == 4
        assert len(latent) == 3

    with capturing(model, cut_points, note), torch.inference_mode():
        model(torch.zeros(3, 3, 32, 32))
    assert order == list(range(len(cut_points)))


def test_nothing_changes_a_map_after_it_was_read(built: Built) -> None:
    model, cut_points = built
    copies: list[Tensor] = []
    _, stream = read(model, cut_points)
    with capturing(model, cut_points, lambda _, latent: copies.append(latent.clone())):
        _, again = read(model, cut_points)
    for kept, copy, later in zip(stream, copies, again, strict=True):
        assert torch.equal(kept, copy)
        assert torch.equal(later, copy)


def test_silencing_a_branch_leaves_the_stream_before_it(built: Built) -> None:
    """A block without its branch is its shortcut: the cut points sit on the stream, all of them."""
    model, cut_points = built
    _, stream = read(model, cut_points)
    checked = 0
    for index, point in enumerate(cut_points):
        if point.branch is None or stream[index].shape != stream[index - 1].shape:
            continue
        branch = model.get_submodule(point.branch)
        handle = branch.register_forward_hook(lambda module, inputs, output: output * 0)
        _, silenced = read(model, cut_points)
        handle.remove()
        assert torch.equal(silenced[index - 1], stream[index - 1])
        assert torch.equal(silenced[index], stream[index - 1]), point.name
        assert not torch.allclose(stream[index], stream[index - 1]), point.name
        checked += 1
    assert checked > 0


def test_filling_an_empty_model_is_loading_a_model(built: Built, request: Any) -> None:
    model, cut_points = built
    family, (arch, _) = (value := request.node.callspec.params["built"]).split()[0], ARCHS[value]
    filled = models.fill(models.build_empty(family, arch, 5, 32), model.state_dict())
    assert not filled.training
    logits, stream = read(model, cut_points)
    filled_logits, filled_stream = read(filled, find_family(family).cut_points(filled))
    assert torch.equal(filled_logits, logits)
    assert all(torch.equal(one, other) for one, other in zip(filled_stream, stream, strict=True))


def test_stochastic_depth_acts_before_the_stream_is_read() -> None:
    arch = {**ARCHS["vit"][0], "depth": 2, "drop_path_rate": 0.9}
    torch.manual_seed(0)
    model = find_family("vit").build(arch, num_classes=5, image_size=32).train()
    latents: list[Tensor] = []
    cut_points = find_family("vit").cut_points(model)
    with capturing(model, cut_points, lambda _, latent: latents.append(latent)):
        model(torch.randn(64, 3, 32, 32))
    dropped = [
        (after == before).flatten(1).all(dim=1).float().mean().item()
        for before, after in pairwise(latents)
    ]
    assert dropped[:2] == [0, 0]
    assert all(0.7 < share < 1 for share in dropped[2:])
