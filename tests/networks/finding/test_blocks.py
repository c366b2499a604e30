from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pandas as pd
import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from tests.helpers.golden import ARCHS, Golden
from tests.helpers.kinds import KINDS, build
from tests.helpers.networks import (
    FAMILIES,
    described,
    every_mini,
    hooks_of,
    mini,
    mini_blocks,
    read,
)
from tests.helpers.written import SMALL, empty
from vitscope.files.tables import read_metadata
from vitscope.networks.building.networks import find_family, plain_attention
from vitscope.networks.finding.blocks import (
    LAYERS,
    BlockActivationCounter,
    Blocks,
    Layer,
    list_blocks,
    place_parameters_in_blocks,
)
from vitscope.networks.finding.capture import capturing
from vitscope.networks.finding.cut_points import BLOCKS, head_costs, read_cut_points


def behind(model: nn.Module, cut_points: list, index: int = -1) -> set[nn.Parameter]:
    """Return the parameters that a feature map depends on, by their gradients."""
    maps: list[torch.Tensor] = []
    model.requires_grad_(True)
    with capturing(model, cut_points, lambda _, latent: maps.append(latent)):
        model(torch.ones(1, 3, 32, 32))
    parameters = list(model.parameters())
    gradients = torch.autograd.grad(maps[index].sum(), parameters, allow_unused=True)
    pairs = zip(parameters, gradients, strict=True)
    return {parameter for parameter, gradient in pairs if gradient is not None}


def size_of(parameters: Iterable[nn.Parameter]) -> int:
    return sum(parameter.numel() for parameter in parameters)


def check(table: pd.DataFrame, model: nn.Module, cut_points: list) -> None:
    count = len(cut_points)
    assert table.columns.tolist() == list(BLOCKS.columns)
    assert table["index"].tolist() == list(range(count))
    assert table["name"].is_unique
    assert table["kind"].iloc[0] == "stem"
    assert table["depth"].iloc[[0, -1]].tolist() == [0, 1]
    assert table["depth"].diff()[1:].tolist() == pytest.approx([1 / (count - 1)] * (count - 1))
    assert (table["parameters"] >= 0).all()
    assert table["parameters"].sum() == size_of(behind(model, cut_points))


@every_mini
def test_blocks_of_small_models(name: str) -> None:
    model, cut_points = mini(name)
    table = mini_blocks(name).table
    check(table, model, cut_points)
    assert set(table["model"]) == {name}

    _, maps = read(model, cut_points, torch.ones(3, 3, 32, 32))
    sizes = table[["channels", "height", "width"]].itertuples(index=False, name=None)
    assert [(3, *size) for size in sizes] == [tuple(latent.shape) for latent in maps]


@pytest.mark.parametrize("name", ARCHS)
def test_blocks_of_published_models(golden: Golden, name: str) -> None:
    family, arch = ARCHS[name]
    model = find_family(family).build(arch, 100, 32).eval()
    blocks = list_blocks(name, model, described())
    check(blocks.table, model, blocks.points)


@every_mini
def test_parameters_are_counted_where_they_are_used(name: str) -> None:
    """A change of what is counted for a block changes that map, and no map before it."""
    model, cut_points = mini(name)
    table = mini_blocks(name).table
    middle = int(table.index[table["parameters"] > 0][len(table) // 2])
    images = torch.randn(1, 3, 32, 32)
    owned = behind(model, cut_points, middle) - behind(model, cut_points, middle - 1)
    assert size_of(owned) == table["parameters"][middle]
    with torch.inference_mode():
        _, before = read(model, cut_points, images)
        for parameter in owned:
            parameter.add_(torch.randn_like(parameter))
        _, after = read(model, cut_points, images)
    same = [torch.equal(*pair) for pair in zip(before, after, strict=True)]
    assert all(same[:middle])
    assert not same[middle]


class Twice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Conv2d(3, 3, 1)
        self.first, self.second = nn.Sequential(self.layer), nn.Sequential(self.layer)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(images))


def test_shared_parameters_are_counted_where_they_are_first_used() -> None:
    points = [{"module": name, "at": "output"} for name in ("first", "second")]
    table = list_blocks("twice", Twice(), described(8), points).table
    assert table["kind"].tolist() == ["stem", "conv"]
    assert table["parameters"].tolist() == [12, 0]


@cache
def blocks_of(name: str) -> Blocks:
    return list_blocks(name, empty(name), described())


@pytest.mark.parametrize("name", SMALL)
def test_parts_and_head_are_the_whole_network(name: str) -> None:
    whole = empty(name).requires_grad_(False)
    table, head, *_ = blocks_of(name)
    with FlopCounterMode(display=False) as counter:
        whole(torch.empty(1, 3, 32, 32, device="meta"))
    assert 2 * (table["operations"].sum() + head.operations) == counter.get_total_flops()
    assert table["parameters"].sum() + head.parameters == size_of(whole.parameters())
    assert (table[["operations", "activations", "peak"]] > 0).all(axis=None)


@every_mini
def test_weights_and_their_device_make_no_difference(name: str) -> None:
    model, _ = mini(name)
    before = hooks_of(model)
    found, expected = list_blocks(name, model, described()), mini_blocks(name)
    assert hooks_of(model) == before
    pd.testing.assert_frame_equal(found.table, expected.table)
    assert found[1:] == expected[1:]


@every_mini
def test_a_backward_pass_keeps_no_more_than_the_activations(name: str) -> None:
    model, _ = mini(name)
    kept: dict[int, int] = {}
    own = {tensor.untyped_storage().data_ptr() for tensor in model.state_dict().values()}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    images = torch.zeros(1, 3, 32, 32)
    own.add(images.untyped_storage().data_ptr())
    hooks = torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor)
    with plain_attention(model), hooks:
        loss = model(images).sum()
    assert loss.requires_grad
    table, head, *_ = mini_blocks(name)
    bound = table["activations"].sum() + head.activations
    assert bound / 4 < sum(kept.values()) <= bound


@pytest.mark.parametrize("name", SMALL)
def test_head_and_cut_points_are_in_the_metadata(tmp_path: Path, name: str) -> None:
    blocks = blocks_of(name)
    BLOCKS.write(blocks.table, tmp_path / "blocks", blocks.metadata())
    assert head_costs(read_metadata(tmp_path / "blocks")) == blocks.head
    assert read_cut_points(tmp_path / "blocks") == blocks.points


def counted(model: nn.Module, images: torch.Tensor) -> tuple[int, int]:
    """Return the bytes that a pass of a model makes, and the most in memory at once."""
    with torch.no_grad(), BlockActivationCounter() as counter:
        model.eval()(images)
    return counter.take()


class Residual(nn.Sequential):
    """A branch beside a stream that waits for it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + super().forward(x)


def test_memory_is_that_of_results_and_of_two_at_once() -> None:
    model = nn.Sequential(nn.Conv2d(3, 8, 1), nn.GELU(), nn.Conv2d(8, 2, 1))
    hidden, out = 4 * 8 * 16, 4 * 2 * 16
    assert counted(model, torch.zeros(1, 3, 4, 4)) == (2 * hidden + out, 2 * hidden)
    # Views and changes in place take none.
    model = nn.Sequential(
        nn.Flatten(), nn.Linear(12, 5), nn.ReLU(inplace=True), nn.Unflatten(1, (5, 1))
    )
    assert counted(model, torch.zeros(2, 3, 2, 2)) == (4 * 2 * 5, 4 * 2 * 5)
    # A stream that waits stays in memory.
    model, size = nn.Sequential(nn.ReLU(), Residual(nn.ReLU(), nn.ReLU(), nn.ReLU())), 4 * 10
    assert counted(model, torch.zeros(10)) == (5 * size, 3 * size)


def test_what_was_taken_is_not_counted_again() -> None:
    with BlockActivationCounter() as counter:
        kept = torch.zeros(10)
        assert counter.take() == (40, 40)
        assert counter.take() == (0, 40)
        del kept
        torch.zeros(5)
    assert counter.take() == (20, 40)


class Recurrent(nn.Module):
    """Adds to a stream of tokens, twice, what a recurrent layer makes of it."""

    def __init__(self, layer: type[nn.RNNBase], both: bool, asks: bool) -> None:
        super().__init__()
        self.stem, self.asks = nn.Conv2d(3, 16, 4, 4), asks
        self.layer = layer(16, 16, batch_first=True, bidirectional=both)
        self.back, self.head = nn.Linear(32 if both else 16, 16), nn.Linear(16, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = self.stem(images).flatten(2).transpose(1, 2)
        if self.asks and x.isnan().any():
            raise ValueError("a question that shapes alone cannot answer")
        for _ in range(2):
            x = x + self.back(self.layer(x)[0])
        return self.head(x.mean(1))


@pytest.mark.parametrize("asks", [False, True])
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize(("layer", "gates"), [(nn.LSTM, 4), (nn.GRU, 3)])
def test_recurrent_layers_pass_a_state_and_are_counted_step_by_step(
    layer: type[nn.RNNBase], gates: int, both: bool, asks: bool
) -> None:
    network = described(16) | {"classes": 10}
    onednn = torch.backends.mkldnn.enabled
    model = Recurrent(layer, both, asks)
    table, _, points, *_ = list_blocks("recurrent", model, network)
    places = place_parameters_in_blocks(model, points, torch.zeros(2, 3, 16, 16))
    assert torch.backends.mkldnn.enabled == onednn
    assert table["kind"].tolist() == ["stem", "ssm", "ssm"]
    tokens, width, directions = 4 * 4, 16, 1 + both
    recurrent = tokens * directions * gates * (width * width + width * width)
    assert {places[f"layer.{name}"] for name, _ in model.layer.named_parameters()} == {(1, "mlp")}
    assert table["operations"].tolist()[1:] == [recurrent + tokens * directions * width * width] * 2


@pytest.mark.parametrize("name", FAMILIES.values())
def test_every_parameter_is_in_one_block_and_one_kind_of_layer(name: str) -> None:
    model, points = mini(name)
    places = place_parameters_in_blocks(model, points, torch.randn(2, 3, 32, 32))
    assert list(places) == [each for each, _ in model.named_parameters()]
    counted: Counter[int] = Counter()
    for each, parameter in model.named_parameters():
        counted[places[each].block] += parameter.numel()
        assert places[each].layer in LAYERS
    # The block table counts them otherwise: on shapes alone, as modules run.
    found = mini_blocks(name)
    expected = [*found.table["parameters"], found.head.parameters]
    assert [counted[index] for index in range(len(points) + 1)] == expected


# As one reads in the code of the networks.
LAYERS_OF: dict[str, dict[str, Layer]] = {
    "vit": {
        "cls_token": "stem",
        "pos_embed": "stem",
        "patch_embed.proj.bias": "stem",
        "blocks.3.norm1.weight": "norm",
        "blocks.3.attn.qkv.weight": "qkv",
        "blocks.3.attn.proj.weight": "projection",
        "blocks.3.attn.proj.bias": "projection",
        "blocks.3.mlp.fc1.bias": "mlp",
        "blocks.3.mlp.fc2.weight": "mlp",
        "norm.weight": "norm",
        "head.weight": "head",
        "head.bias": "head",
    },
    "swin": {
        "patch_embed.norm.weight": "norm",
        "layers.0.blocks.0.attn.relative_position_bias_table": "other",
        "layers.0.blocks.1.attn.qkv.weight": "qkv",
        "layers.1.downsample.reduction.weight": "mlp",
    },
    "alternet": {
        "layer1.0.conv3.2.weight": "convolution",
        "layer1.0.conv3.0.weight": "norm",
        "layer3.1.attn.pos_embedding": "other",
    },
    "convnext": {
        "stages.0.blocks.0.gamma": "other",
        "stages.0.blocks.0.conv_dw.weight": "convolution",
        "stages.0.blocks.0.mlp.fc1.weight": "mlp",
    },
    "swinv2": {
        "layers.0.blocks.0.attn.cpb_mlp.0.weight": "other",
        "layers.0.blocks.0.attn.logit_scale": "other",
        "layers.0.blocks.0.attn.qkv.weight": "qkv",
    },
    # Biases of queries and values are put together, those of keys are zero.
    "beit": {"blocks.0.attn.q_bias": "other", "blocks.0.attn.qkv.weight": "qkv"},
    # Queries and keys are turned by their positions.
    "eva02": {"blocks.0.attn.qkv.weight": "qkv", "blocks.0.attn.proj.weight": "projection"},
    # Weights are standardized before they are used.
    "nfnet": {"stages.0.0.conv1.weight": "convolution"},
    # Reduced keys come from a convolution and another layer.
    "pvt_v2": {"stages.0.blocks.0.attn.sr.weight": "convolution"},
    # Its layers are no modules that run.
    "torchvision vit": {
        "encoder.layers.encoder_layer_0.self_attention.in_proj_weight": "qkv",
        "encoder.layers.encoder_layer_0.self_attention.in_proj_bias": "qkv",
        "encoder.layers.encoder_layer_0.self_attention.out_proj.bias": "projection",
    },
}


@pytest.mark.parametrize("name", LAYERS_OF)
def test_layers_are_what_their_code_makes_them(name: str) -> None:
    if name in KINDS:
        model, size = build(name), KINDS[name].image_size
        points = list_blocks(name, model, described(size)).points
    else:
        (model, points), size = mini(name), 32
    places = place_parameters_in_blocks(model, points, torch.randn(2, 3, size, size))
    expected = LAYERS_OF[name]
    assert {each: places[each].layer for each in expected} == expected
    if name != "nfnet":
        # A bias is in the layer of its weight.
        for each, place in places.items():
            weight = places.get(each.removesuffix("bias") + "weight", place)
            assert not each.endswith(".bias") or weight == place
