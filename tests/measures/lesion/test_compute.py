"""Lesions: the same logits as by the plain way, with less to compute; what is told of bad input."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from tests.helpers.networks import mini
from tests.helpers.splits import CENTER, SPREAD, on_model, shapes
from tests.networks.families.test_cut_points import ARCHS
from vitscope.data.image_rows import rows_to_classify
from vitscope.errors import VitscopeError
from vitscope.measures.intervals import interval
from vitscope.measures.lesion.compute import (
    branches_of,
    correctness,
    lesion_table,
    lesioned,
    measure,
)
from vitscope.networks.blocks import block_table
from vitscope.networks.cut_point_columns import CUT_POINT
from vitscope.networks.cut_points import CutPoint
from vitscope.networks.family import find_family
from vitscope.networks.timm_import import import_timm
from vitscope.workflow.tables import find_table

IMAGES = torch.randn(3, 3, 32, 32, generator=torch.Generator().manual_seed(1))
Built = tuple[nn.Module, list[str]]


def scaled_vit() -> nn.Module:
    transformer = import_timm("timm.models.vision_transformer").VisionTransformer
    options = {"embed_dim": 12, "depth": 3, "num_heads": 3, "drop_path_rate": 0.3}
    return transformer(32, 8, num_classes=5, init_values=0.1, **options)


def squeezed_resnet() -> nn.Module:
    resnet = import_timm("timm.models.resnet")
    options = {"block_args": {"attn_layer": "se"}, "drop_path_rate": 0.3}
    return resnet.ResNet(resnet.Bottleneck, [1, 2, 1, 1], num_classes=5, stem_width=8, **options)


# What a family reads beside the networks that it builds from dimensions.
OTHERS: dict[str, tuple[str, Callable[[], nn.Module]]] = {
    "vit with LayerScale": ("vit", scaled_vit),
    "timm_resnet with SE": ("timm_resnet", squeezed_resnet),
}


@pytest.fixture(scope="module", params=[*ARCHS, *OTHERS])
def built(request: pytest.FixtureRequest) -> Built:
    torch.manual_seed(0)
    if request.param in OTHERS:
        name, build = OTHERS[request.param]
        family, model = find_family(name), build()
    else:
        family = find_family(request.param.split()[0])
        model = family.build(ARCHS[request.param][0], num_classes=5, image_size=32)
    # The last normalization of a block of timm's ResNets and the head of its Mixers start at zero,
    # which would hide branches.
    for parameter in model.parameters():
        if parameter.ndim == 1 or not parameter.any():
            nn.init.uniform_(parameter, 0.5, 1.5)
    return model.eval(), list(branches_of("model", model, family.cut_points(model)).values())


@contextmanager
def silenced(model: nn.Module, branch: str) -> Iterator[None]:
    module = model.get_submodule(branch)
    handle = module.register_forward_hook(lambda _, inputs, output: torch.zeros_like(output))
    try:
        yield
    finally:
        handle.remove()


def naively(model: nn.Module, branches: list[str], images: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Return what `lesioned` does, by a whole forward pass for each branch."""
    without = []
    with torch.no_grad():
        clean = model(images)
        for branch in branches:
            with silenced(model, branch):
                without.append(model(images))
    return clean, without


def assert_the_same(ours: tuple[Tensor, list[Tensor]], theirs: tuple[Tensor, list[Tensor]]) -> None:
    assert len(ours[1]) == len(theirs[1])
    for mine, naive in zip((ours[0], *ours[1]), (theirs[0], *theirs[1]), strict=True):
        assert torch.equal(mine, naive)


def assert_untouched(model: nn.Module) -> None:
    for module in model.modules():
        assert not module._forward_hooks
        assert not module._forward_pre_hooks
        assert "forward" not in vars(module)


def test_logits_are_to_the_bit_those_of_whole_forward_passes(built: Built) -> None:
    model, branches = built
    expected = naively(model, branches, IMAGES)
    assert_the_same(lesioned(model, branches, IMAGES), expected)
    assert not any(torch.equal(expected[0], logits) for logits in expected[1])
    assert_untouched(model)


LAST_LAYERS = (nn.Linear, nn.Conv2d, nn.BatchNorm2d)


def test_it_is_as_if_the_last_layer_of_the_branch_were_zero(built: Built) -> None:
    model, branches = built
    _, without = lesioned(model, branches, IMAGES)
    for branch, logits in zip(branches, without, strict=True):
        zeroed = deepcopy(model)
        layers = zeroed.get_submodule(branch).modules()
        *_, last = (layer for layer in layers if isinstance(layer, LAST_LAYERS))
        for parameter in last.parameters(recurse=False):
            nn.init.zeros_(parameter)
        with torch.no_grad():
            torch.testing.assert_close(zeroed(IMAGES), logits, rtol=1e-5, atol=1e-6)


def flops(action: Callable[[], object]) -> int:
    with FlopCounterMode(display=False) as counter:
        action()
    return int(counter.get_total_flops())


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["resnet", "vit", "pit", "swin", "alternet", "mixer"])
def test_the_prefix_is_not_computed_again(name: str) -> None:
    model, cut_points = mini(name)
    model.requires_grad_(False)
    branches = list(branches_of(name, model, cut_points).values())
    ours = flops(lambda: lesioned(model, branches, IMAGES))
    whole = flops(lambda: naively(model, branches, IMAGES))
    assert ours < whole / 1.7


def test_a_vit_runs_nothing_but_what_comes_after_each_branch() -> None:
    model, cut_points = mini("vit")
    branches = list(branches_of("vit", model, cut_points).values())
    with torch.no_grad():
        outside = flops(lambda: model.head(torch.zeros(3, 48)))
        outside_clean = outside + flops(lambda: model.patch_embed(IMAGES))
        block = model.blocks[0]
        tokens = torch.zeros(3, 65, 48)
        parts = [flops(lambda: block.attn(tokens)), flops(lambda: block.mlp(tokens))] * 12
    rest = sum(sum(parts[index + 1 :]) + outside for index in range(24))
    expected = sum(parts) + outside_clean + rest
    assert flops(lambda: lesioned(model, branches, IMAGES)) == expected


# Networks of every bad habit.


class Habit(nn.Module):
    """A block with a branch `branch`, and what its forward pass does around it."""

    def __init__(self, forward: Callable[["Habit", Tensor], Tensor]) -> None:
        super().__init__()
        self.first, self.second, self.branch = (nn.Linear(4, 4) for _ in range(3))
        self.relu = nn.ReLU(inplace=True)
        self.pair = Pair()
        self.eats = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(4, 4))
        self.how = forward

    def forward(self, x: Tensor) -> Tensor:
        return self.how(self, x)


class Pair(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.one(x), self.other(x)


def plain(m: Any, x: Tensor) -> Tensor:
    return x + m.branch(m.first(x))


def written_over(m: Any, x: Tensor) -> Tensor:
    out = m.branch(m.first(x))
    out += x
    return m.relu(out)


def written_over_before(m: Any, x: Tensor) -> Tensor:
    y = m.first(x)
    y.mul_(2)
    return y + m.branch(m.second(y))


def written_over_after(m: Any, x: Tensor) -> Tensor:
    y = m.first(x)
    out = y + m.branch(m.second(y))
    y.add_(1)
    return out * y


def written_by_a_module(m: Any, x: Tensor) -> Tensor:
    y = m.first(x)
    z = m.eats(y)
    return y + m.branch(z)


def the_stream_written_over(m: Any, x: Tensor) -> Tensor:
    return m.relu(x) + m.branch(m.first(x))


def shared(m: Any, x: Tensor) -> Tensor:
    y = m.first(x)
    return m.first(y + m.branch(y))


def branch_twice(m: Any, x: Tensor) -> Tensor:
    return x + m.branch(m.first(x)) + m.branch(m.second(x)[:, :1]).sum()


def pairs(m: Any, x: Tensor) -> Tensor:
    one, other = m.pair(x)
    return one + m.branch(other)


def pair_written_over(m: Any, x: Tensor) -> Tensor:
    one, other = m.pair(x)
    other.neg_()
    return one + m.branch(other)


HABITS = [
    plain,
    written_over,
    written_over_before,
    written_over_after,
    written_by_a_module,
    the_stream_written_over,
    shared,
    branch_twice,
    pairs,
    pair_written_over,
]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(HABITS), min_size=1, max_size=4), st.integers(0, 99))
def test_no_habit_of_a_network_changes_the_logits(
    habits: list[Callable[[Habit, Tensor], Tensor]], seed: int
) -> None:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(3, 4), *map(Habit, habits), nn.Linear(4, 2)).eval()
    images = torch.randn(2, 5, 3)
    branches = [f"{1 + position}.branch" for position in range(len(habits))]
    expected = naively(model, branches, images.clone())
    assert_the_same(lesioned(model, branches, images), expected)
    assert_untouched(model)


def test_a_module_that_is_used_in_two_places_is_computed_in_both() -> None:
    torch.manual_seed(0)
    block = Habit(plain)
    model = nn.Sequential(nn.Linear(3, 4), block, Habit(written_over), block, nn.Linear(4, 2))
    branches = ["1.branch", "2.branch"]
    images = torch.randn(2, 3)
    assert_the_same(lesioned(model, branches, images), naively(model, branches, images))


def test_a_forward_of_ones_own_is_put_back() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), Habit(plain), nn.Linear(4, 2))

    def own(x: Tensor) -> Tensor:
        return nn.functional.linear(x, model[0].weight) * 2

    model[0].forward = own
    images = torch.randn(2, 3)
    expected = naively(model, ["1.branch"], images)
    assert_the_same(lesioned(model, ["1.branch"], images), expected)
    assert model[0].forward is own


def test_a_failure_leaves_the_model_as_it_was() -> None:
    model, cut_points = mini("vit")
    branches = list(branches_of("vit", model, cut_points).values())
    calls = []

    def fail_later(*_: object) -> None:
        calls.append(1)
        if len(calls) == 3:
            raise KeyError

    handle = model.head.register_forward_hook(fail_later)
    with pytest.raises(KeyError):
        lesioned(model, branches, IMAGES)
    handle.remove()
    assert_untouched(model)
    with pytest.raises(RuntimeError):
        lesioned(model, branches, IMAGES[:, :2])
    assert_untouched(model)


# Accuracy.


class Voters(nn.Module):
    """A network whose logits can be told by hand: each branch adds a vote for a class."""

    def __init__(self, votes: list[list[float]]) -> None:
        super().__init__()
        self.voters = nn.ModuleList(nn.Linear(1, len(vote)) for vote in votes)
        for voter, vote in zip(self.voters, votes, strict=True):
            nn.init.zeros_(voter.weight)
            voter.bias.data = torch.tensor(vote)

    def forward(self, images: Tensor) -> Tensor:
        out = images
        for voter in self.voters:
            out = out + voter(images[:, :1])
        return out


VOTERS = ["voters.0", "voters.1"]


def test_correctness_of_a_network_that_is_told_by_hand() -> None:
    model = Voters([[3.0, 0, 0], [0, 2.0, 0]])
    images = torch.tensor([[0.0, 0, 0], [0, 2, 0], [0, 0, 4]])
    # Logits [3, 2, 0], [3, 4, 0], [3, 2, 4]; without the first voter [0, 2, 0], [0, 4, 0],
    # [0, 2, 4]; without the second [3, 0, 0], [3, 2, 0], [3, 0, 4].
    labels = np.array([0, 1, 1])
    clean, without = correctness(model, VOTERS, [images], labels)
    assert clean.tolist() == [True, True, False]
    assert without.tolist() == [[False, True], [True, False], [False, False]]
    assert clean.dtype == without.dtype == bool


@pytest.mark.parametrize("name", ["vit", "pit"])
def test_it_is_that_of_whole_forward_passes_in_any_batches(name: str) -> None:
    model, cut_points = mini(name)
    branches = list(branches_of(name, model, cut_points).values())
    images = torch.randn(10, 3, 32, 32, generator=torch.Generator().manual_seed(3))
    clean, without = naively(model, branches, images)
    labels = np.array([without[row][row].argmax() for row in range(10)])
    expected = np.stack([each.argmax(1).numpy() == labels for each in without], axis=1)
    assert 0 < expected.mean() < 1
    for size in (10, 4):
        found, others = correctness(model.train(), branches, images.split(size), labels)
        np.testing.assert_array_equal(found, clean.argmax(1).numpy() == labels)
        np.testing.assert_array_equal(others, expected)


def test_a_number_of_images_other_than_that_of_labels() -> None:
    with pytest.raises(ValueError, match="got 3 images, expected 4"):
        correctness(Voters([[1.0, 0, 0]]), ["voters.0"], [torch.zeros(3, 3)], np.zeros(4, int))


def test_the_table(tmp_path: Path) -> None:
    model, cut_points = mini("swin")
    blocks = block_table("swin", model, cut_points, 32)
    units = list(branches_of("swin", model, cut_points))
    assert len(units) == 24
    assert blocks.set_index("index")["kind"][units].isin(["msa", "mlp"]).all()
    generator = np.random.default_rng(0)
    clean, without = generator.random(50) < 0.8, generator.random((50, 24)) < 0.6

    table = lesion_table(blocks, units, clean, without, 500, 3)
    find_table("lesion").write(table, tmp_path / "table")
    read = find_table("lesion").read(tmp_path / "table")
    assert read["index"].tolist() == units
    columns = list(CUT_POINT)
    expected = blocks[blocks["index"].isin(units)][columns].reset_index(drop=True)
    pd.testing.assert_frame_equal(read[columns], expected, check_dtype=False)
    assert (read["images"] == 50).all()
    np.testing.assert_allclose(read["clean_accuracy"], clean.mean(), rtol=1e-15)
    np.testing.assert_allclose(read["accuracy"], without.mean(axis=0), rtol=1e-15)
    changes = 100 * (without.mean(axis=0) - clean.mean())
    np.testing.assert_allclose(read["change"], changes, rtol=0, atol=1e-12)
    # Of the differences on the same images, and not of two accuracies apart.
    ends = interval(100.0 * (without.astype(int) - clean.astype(int)[:, None]), 500, 3)
    np.testing.assert_array_equal(read[["ci_low", "ci_high"]].T, ends)
    assert all(low <= high for low, high in pairwise([-100, *sorted(changes), 100]))


def test_a_single_image_has_no_interval() -> None:
    model, cut_points = mini("vit")
    blocks = block_table("vit", model, cut_points, 32)
    units = list(branches_of("vit", model, cut_points))
    table = lesion_table(blocks, units, np.ones(1, bool), np.zeros((1, 24), bool), 100, 0)
    assert table["change"].tolist() == [-100] * 24
    assert table[["ci_low", "ci_high"]].isna().all(axis=None)


def test_a_job_measures_the_chosen_images(tmp_path: Path) -> None:
    images = shapes(tmp_path / "split", 20)
    network, cut_points = mini("vit")
    blocks = block_table("net", network, cut_points, 32)
    given = on_model(network, images, cut_points=cut_points, blocks=blocks)
    bootstrap = {"resamples": 100, "seed": 3}
    table = measure(given, {"images": 9, "seed": 1}, bootstrap)
    rows = rows_to_classify(images, 9, 1)
    branches = branches_of("net", network, cut_points)
    pixels = images.normalized(rows, CENTER, SPREAD).split(7)
    found = correctness(network, list(branches.values()), pixels, images.labels[rows])
    expected = lesion_table(blocks, list(branches), *found, **bootstrap)
    pd.testing.assert_frame_equal(table, expected, check_exact=True)


# Bad input.


def test_logits_that_are_no_numbers() -> None:
    sick = Voters([[0.0, 0.0], [float("nan"), 0.0]])
    images = torch.zeros(2, 2)
    with pytest.raises(VitscopeError) as caught:
        correctness(sick, VOTERS, [images], np.zeros(2, int))
    assert str(caught.value) == (
        "The logits of the whole model are not finite for 2 of 2 images, so that no class can be "
        "told: check the checkpoint, and the mean and std of the data set."
    )
    saved = Voters([[0.0, 0.0], [float("inf"), 0.0], [-float("inf"), 0.0]])
    with pytest.raises(VitscopeError, match="of the whole model are not finite"):
        correctness(saved, VOTERS, [images], np.zeros(2, int))


def test_logits_that_are_no_numbers_without_a_branch() -> None:
    class Divided(Voters):
        def forward(self, images: Tensor) -> Tensor:
            return images / self.voters[0](images[:, :1])

    with pytest.raises(
        VitscopeError, match=r"of the model without voters\.0 are not finite for 1 "
    ):
        correctness(Divided([[1.0, 1.0]]), ["voters.0"], [torch.ones(1, 2)], np.zeros(1, int))


def test_a_model_without_a_branch() -> None:
    model, cut_points = mini("vit")
    with pytest.raises(VitscopeError) as caught:
        branches_of("mine", model, cut_points[:1])
    assert str(caught.value) == (
        "models.mine: no cut point of the model has a residual branch, so that no unit can be "
        "removed: take the model out of the figures of the kind lesion."
    )


def test_a_branch_that_does_not_exist() -> None:
    model, cut_points = mini("vit")
    missing = CutPoint("x", "mlp", 1, "blocks.0", "output", cut_points[0].layout, "blocks.0.bn2")
    with pytest.raises(VitscopeError, match=r"the model has no module 'blocks\.0\.bn2'"):
        branches_of("mine", model, [*cut_points, missing])
