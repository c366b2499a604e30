"""Cut points and branches, held against the graph that torchlens records of the same networks."""

import pytest
import torch
from torch import Tensor, nn

from tests.helpers.networks import described
from vitscope.networks.building.networks import without_fast_path
from vitscope.networks.building.timm_import import import_timm
from vitscope.networks.finding.blocks import list_blocks
from vitscope.networks.finding.capture import capturing
from vitscope.networks.finding.cut_points import CutPoint, Layout
from vitscope.networks.running.joins import JoinReader

# Torchvision is imported with timm, beside any torch.
timm = import_timm()
torchvision = pytest.importorskip("torchvision")
torchlens = pytest.importorskip("torchlens")
wrappers = pytest.importorskip("torchlens.backends.torch.wrappers")

pytestmark = pytest.mark.nightly
SMALL = ("vit", "vit3", "resnet", "convnext", "efficientnet", "mambaout", "coatnet", "byobnet")
OF_TIMM = {f"test_{name}": 160 for name in (*SMALL, "nfnet")} | {
    "deit_tiny_distilled_patch16_224": 224,
    "cait_xxs24_224": 224,
    "pit_ti_224": 224,
    "mixer_s32_224": 224,
    "poolformer_s12": 64,
    "mobilevit_xxs": 128,
}
OF_TORCHVISION = ("resnet18", "mobilenet_v3_small", "regnet_y_400mf", "swin_t", "vit_b_32")
OF_TORCHVISION += ("efficientnet_b0",)


def network_of(name: str) -> tuple[nn.Module, int]:
    """Return a network with random weights, and the size of its images."""
    torch.manual_seed(0)
    if name in OF_TIMM:
        network, size = timm.create_model(name, num_classes=5), OF_TIMM[name]
    else:
        size = 224 if name == "vit_b_32" else 64
        network = torchvision.models.get_model(name, weights=None, num_classes=5)
    with torch.no_grad():
        for parameter in network.parameters():
            # No branch is multiplied by zero, and no two of them are alike.
            parameter.add_(0.02 * torch.randn_like(parameter))
    return network.eval(), size


def read(
    network: nn.Module, points: list[CutPoint], images: Tensor
) -> tuple[dict[int, Tensor], dict[int, Tensor]]:
    """Return the maps at all cut points, and the branches of those that one addition joins."""
    latents: dict[int, Tensor] = {}
    branches: dict[int, Tensor] = {}
    joins = {
        point.join: index
        for index, point in enumerate(points)
        if point.join is not None and len(point.join.additions) == 1
    }
    with torch.no_grad():
        with capturing(
            network, points, lambda index, latent: latents.update({index: latent.clone()})
        ):
            network(images)
        keep = JoinReader(
            network, joins, lambda at, _, branch: branches.update({at: branch.clone()})
        )
        with without_fast_path(), keep:
            network(images)
    keep.check()
    return latents, branches


class Graph:
    """The operations that depend on the images, as torchlens records them, and what they return.

    `dominators` are those on every path from the images to an operation, which is one of them.
    """

    def __init__(self, network: nn.Module, images: Tensor) -> None:
        self.out: dict[str, Tensor] = {}
        self.dominators: dict[str, set[str]] = {}
        self.ancestors: dict[str, set[str]] = {}
        try:
            trace = torchlens.trace(network, images)
        finally:
            # It leaves torch's functions wrapped, for other tests too.
            wrappers.unwrap_torch()
        for each in trace.ops:
            if not each.has_input_ancestor:
                continue
            name = each.label
            # A parent that runs once is named without its number.
            labels = [label if ":" in label else f"{label}:1" for label in each.parents]
            parents = [label for label in labels if label in self.out]
            assert bool(parents) != each.is_input
            self.out[name] = each.out.detach()
            found = [self.dominators[parent] for parent in parents]
            self.dominators[name] = {name}.union(set.intersection(*found) if found else ())
            self.ancestors[name] = {name}.union(*(self.ancestors[parent] for parent in parents))
        self.output = name
        assert each.is_output

    def returning(self, expected: Tensor, layout: Layout | None = None) -> list[str]:
        """Return which operations return a tensor, laid out as the cut point says."""
        return [name for name, out in self.out.items() if _is(out, expected, layout)]


def _is(out: Tensor, expected: Tensor, layout: Layout | None) -> bool:
    if layout is not None:
        try:
            out = layout.to_nchw(out)
        except (RuntimeError, IndexError, ValueError):
            # It has other dimensions.
            return False
    if out.shape != expected.shape:
        return False
    return float((out - expected).abs().max()) <= 1e-6 * float(expected.abs().max())


@pytest.mark.parametrize("name", [*OF_TIMM, *OF_TORCHVISION])
def test_every_path_of_the_graph_meets_at_the_cut_points(name: str) -> None:
    network, size = network_of(name)
    images = torch.randn(2, 3, size, size, generator=torch.Generator().manual_seed(1))
    points = list_blocks(name, network, described(size)).points
    latents, branches = read(network, points, images)
    graph = Graph(network, images)
    on_all_paths = graph.dominators[graph.output]
    places = [
        [each for each in graph.returning(latents[index], point.layout) if each in on_all_paths]
        for index, point in enumerate(points)
    ]
    for point, found in zip(points, places, strict=True):
        assert found, f"{point.name}: no operation on every path returns it"
    for index, branch in branches.items():
        before, after = places[index - 1][0], places[index][-1]
        between = [
            each
            for each in graph.returning(branch)
            if before in graph.dominators[each] and each in graph.ancestors[after]
        ]
        assert between, f"{points[index].name}: its branch is not between the cut points"
        assert {*between}.isdisjoint(on_all_paths), (
            f"{points[index].name}: its branch is the stream"
        )
