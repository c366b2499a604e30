"""Lesions: the same logits as by the plain way, with less to compute; how bad input is refused."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
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

from tests.helpers.networks import described, hooks_of, mini, mini_blocks
from tests.helpers.refusals import refusal
from tests.helpers.splits import CENTER, SPREAD, on_model, shapes
from tests.helpers.written import SMALL, written_points
from tests.helpers.written import built as build_written
from vitscope.data.split import rows_to_classify
from vitscope.errors import VitscopeError
from vitscope.jobs.tables import find_table
from vitscope.measures.branches.lesion import (
    correctness_of_lesions,
    joins_for_lesions,
    lesioned,
    measure_lesion,
)
from vitscope.measures.scores import accuracy_changes
from vitscope.networks.building.timm_import import import_timm
from vitscope.networks.finding.blocks import list_blocks
from vitscope.networks.finding.cut_points import CUT_POINT, Addition, Join
from vitscope.networks.finding.dataflow import Value
from vitscope.networks.finding.dataflow_recorder import record_dataflow
from vitscope.networks.running.joins import Silencing

IMAGES = torch.randn(3, 3, 32, 32, generator=torch.Generator().manual_seed(1))


@dataclass(frozen=True)
class Case:
    """A network, its joins, and the modules whose output is all of the branch that joins there."""

    model: nn.Module
    joins: list[Join]
    branches: list[str]


def scaled_vit() -> nn.Module:
    transformer = import_timm("timm.models.vision_transformer").VisionTransformer
    options = {"embed_dim": 12, "depth": 3, "num_heads": 3, "drop_path_rate": 0.3}
    return transformer(32, 8, num_classes=5, init_values=0.1, **options)


def squeezed_resnet() -> nn.Module:
    resnet = import_timm("timm.models.resnet")
    options = {"block_args": {"attn_layer": "se"}, "drop_path_rate": 0.3}
    return resnet.ResNet(resnet.Bottleneck, [1, 2, 1, 1], num_classes=5, stem_width=8, **options)


# Each with the module that ends the branch of a cut point.
OTHERS: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "vit with LayerScale": (scaled_vit, ""),
    "timm_resnet with SE": (squeezed_resnet, ".bn3"),
}


@pytest.fixture(scope="module", params=[*SMALL, *OTHERS])
def case(request: pytest.FixtureRequest) -> Case:
    torch.manual_seed(0)
    other = OTHERS.get(request.param)
    model = other[0]() if other else build_written(request.param)
    # The last normalization of a block of timm's ResNets and the head of its Mixers start at zero,
    # which would hide branches.
    for parameter in model.parameters():
        if parameter.ndim == 1 or not parameter.any():
            nn.init.uniform_(parameter, 0.5, 1.5)
    points = list_blocks("model", model, described()).points
    joins = joins_for_lesions("model", points)
    if other:
        branches = [points[index].name + other[1] for index in joins]
    else:
        written = written_points(request.param)["branch"]
        branches = [branch for branch in written if branch]
    assert len(branches) == len(joins)
    return Case(model, list(joins.values()), branches)


def naively(model: nn.Module, branches: list[str], images: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Return what `lesioned` does, by a whole forward pass for each branch."""
    without = []
    with torch.no_grad():
        clean = model(images)
        for branch in branches:
            module = model.get_submodule(branch)
            with module.register_forward_hook(lambda _, inputs, output: torch.zeros_like(output)):
                without.append(model(images))
    return clean, without


def assert_the_same(ours: tuple[Tensor, list[Tensor]], theirs: tuple[Tensor, list[Tensor]]) -> None:
    assert len(ours[1]) == len(theirs[1])
    for mine, naive in zip((ours[0], *ours[1]), (theirs[0], *theirs[1]), strict=True):
        assert torch.equal(mine, naive)


def assert_untouched(model: nn.Module, hooks: list[dict[int, object]]) -> None:
    assert hooks_of(model) == hooks
    assert not any("forward" in vars(module) for module in model.modules())


def test_logits_are_to_the_bit_those_of_whole_forward_passes(case: Case) -> None:
    hooks = hooks_of(case.model)
    expected = naively(case.model, case.branches, IMAGES)
    assert_the_same(lesioned(case.model, case.joins, IMAGES), expected)
    assert not any(torch.equal(expected[0], logits) for logits in expected[1])
    assert_untouched(case.model, hooks)


def flops(action: Callable[[], object]) -> int:
    with FlopCounterMode(display=False) as counter:
        action()
    return int(counter.get_total_flops())


def test_a_vit_runs_nothing_but_what_comes_after_each_branch() -> None:
    model, cut_points = mini("vit")
    joins = list(joins_for_lesions("vit", cut_points).values())
    with torch.no_grad():
        outside = flops(lambda: model.head(torch.zeros(3, 48)))
        outside_clean = outside + flops(lambda: model.patch_embed(IMAGES))
        block = model.blocks[0]
        tokens = torch.zeros(3, 65, 48)
        parts = [flops(lambda: block.attn(tokens)), flops(lambda: block.mlp(tokens))] * 12
    rest = sum(sum(parts[index + 1 :]) + outside for index in range(24))
    expected = sum(parts) + outside_clean + rest
    assert flops(lambda: lesioned(model, joins, IMAGES)) == expected


# Networks of every bad habit.


class Habit(nn.Module):
    """A block with a branch `branch`, and what its forward pass does around it.

    Of its calls in a pass, in that of number `silent` the stream takes the place of the sum.
    """

    def __init__(self, forward: Callable[["Habit", Tensor], Tensor]) -> None:
        super().__init__()
        self.first, self.second, self.branch = (nn.Linear(4, 4) for _ in range(3))
        self.relu = nn.ReLU(inplace=True)
        self.pair = Pair()
        self.eats = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(4, 4))
        self.how = forward
        self.silent, self.calls = -1, 0

    def join(self, stream: Tensor, branch: Tensor) -> Tensor:
        self.calls += 1
        return stream.clone() if self.calls - 1 == self.silent else stream + branch

    def join_in_place(self, branch: Tensor, stream: Tensor) -> Tensor:
        self.calls += 1
        return branch.copy_(stream) if self.calls - 1 == self.silent else branch.add_(stream)

    def forward(self, x: Tensor) -> Tensor:
        return self.how(self, x)


class Pair(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.one(x), self.other(x)


def plain(m: Any, x: Tensor) -> Tensor:
    return m.join(x, m.branch(m.first(x)))


def written_over(m: Any, x: Tensor) -> Tensor:
    return m.relu(m.join_in_place(m.branch(m.first(x)), x))


def written_over_after(m: Any, x: Tensor) -> Tensor:
    y = m.first(x)
    out = m.join(y, m.branch(m.second(y)))
    y.add_(1)
    return out * y


def written_by_a_module(m: Any, x: Tensor) -> Tensor:
    y = m.first(x)
    z = m.eats(y)
    return m.join(y, m.branch(z))


def the_stream_written_over(m: Any, x: Tensor) -> Tensor:
    return m.join(m.relu(x), m.branch(m.first(x)))


def branch_twice(m: Any, x: Tensor) -> Tensor:
    return m.join(x, m.branch(m.first(x))) + m.branch(m.second(x)[:, :1]).sum()


def pair_written_over(m: Any, x: Tensor) -> Tensor:
    one, other = m.pair(x)
    other.neg_()
    return m.join(one, m.branch(other))


HABITS = [
    plain,
    written_over,
    written_over_after,
    written_by_a_module,
    the_stream_written_over,
    branch_twice,
    pair_written_over,
]


class Keeping(nn.Module):
    def __init__(self, kept: list[Tensor]) -> None:
        super().__init__()
        self.layer, self.kept = nn.Conv2d(4, 4, 1), kept

    def forward(self, x: Tensor) -> Tensor:
        y = self.layer(x)
        self.kept.append(y)
        return y


class Stacked(nn.Module):
    """A network that takes the branches of its blocks from a list."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[Tensor] = []
        self.stem = nn.Conv2d(3, 4, 2, 2)
        self.layers = nn.ModuleList(Keeping(self.kept) for _ in range(3))
        self.head = nn.Linear(4, 3)

    def forward(self, images: Tensor) -> Tensor:
        x = self.stem(images)
        for each in self.layers:
            each(x)
            x = x + self.kept.pop()
        logits: Tensor = self.head(x.mean((2, 3)))
        return logits


def test_modules_that_fill_a_list_run_in_every_lesion() -> None:
    torch.manual_seed(0)
    model, images = Stacked().eval(), torch.randn(4, 3, 8, 8)
    joins = list(joins_for_lesions("net", list_blocks("net", model, described(8)).points).values())
    assert len(joins) == 3
    _, without = lesioned(model, joins, images)
    for join, logits in zip(joins, without, strict=True):
        with torch.no_grad(), Silencing(model, join.names, join):
            assert torch.equal(model(images), logits)


def joins_after(model: nn.Module, images: Tensor, branches: Sequence[str]) -> list[Join]:
    """Return the additions of what modules return, one of each, as one knows where to look."""
    flow = record_dataflow(model, images)
    joins: dict[int, Join] = {}
    for branch in dict.fromkeys(branches):
        given = [p.value for p in flow.passages if (p.module, p.at) == (branch, "output")]
        sums = [
            operation
            for operation in flow.operations
            if operation.name == "add" and any(value in operation.args for value in given)
        ]
        for operation in sums[: branches.count(branch)]:
            (stream,) = [
                place
                for place, value in enumerate(operation.args)
                if isinstance(value, Value) and value not in given
            ]
            addition = Addition(operation.which, (stream,), (1 - stream,))
            joins[flow.operations.index(operation)] = Join((addition,), True)
    return [joins[place] for place in sorted(joins)]


def rejoined(
    model: nn.Sequential, silent: Sequence[tuple[int, int]], images: Tensor
) -> tuple[Tensor, list[Tensor]]:
    """Return what `lesioned` does, of a network of habits: of blocks, one call each is silent."""

    def logits() -> Tensor:
        for block in model.modules():
            if isinstance(block, Habit):
                block.calls = 0
        return model(images.clone())

    without = []
    with torch.no_grad():
        clean = logits()
        for position, call in silent:
            model[position].silent = call
            without.append(logits())
            model[position].silent = -1
    return clean, without


@settings(max_examples=60)
@given(st.lists(st.sampled_from(HABITS), min_size=1, max_size=4), st.integers(0, 99))
def test_no_habit_of_a_network_changes_the_logits(
    habits: list[Callable[[Habit, Tensor], Tensor]], seed: int
) -> None:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(3, 4), *map(Habit, habits), nn.Linear(4, 2)).eval()
    images = torch.randn(2, 5, 3)
    positions = range(1, 1 + len(habits))
    joins = joins_after(model, images, [f"{position}.branch" for position in positions])
    assert len(joins) == len(habits)
    expected = rejoined(model, [(position, 0) for position in positions], images)
    assert_the_same(lesioned(model, joins, images), expected)
    assert_untouched(model, [{}] * len([*model.modules()]))


def test_a_module_that_is_used_in_two_places_is_computed_in_both() -> None:
    torch.manual_seed(0)
    block = Habit(plain)
    model = nn.Sequential(nn.Linear(3, 4), block, Habit(written_over), block, nn.Linear(4, 2))
    images = torch.randn(2, 3)
    joins = joins_after(model, images, ["1.branch", "2.branch", "1.branch"])
    expected = rejoined(model, [(1, 0), (2, 0), (1, 1)], images)
    assert_the_same(lesioned(model, joins, images), expected)


def test_a_forward_of_ones_own_is_put_back() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), Habit(plain), nn.Linear(4, 2))

    def own(x: Tensor) -> Tensor:
        return nn.functional.linear(x, model[0].weight) * 2

    model[0].forward = own
    images = torch.randn(2, 3)
    expected = rejoined(model, [(1, 0)], images)
    joins = joins_after(model, images, ["1.branch"])
    assert_the_same(lesioned(model, joins, images), expected)
    assert model[0].forward is own


def test_a_failure_leaves_the_model_as_it_was() -> None:
    model, cut_points = mini("vit")
    joins = list(joins_for_lesions("vit", cut_points).values())
    hooks, calls = hooks_of(model), []

    def fail_later(*_: object) -> None:
        calls.append(1)
        if len(calls) >= 3:
            raise KeyError

    handle = model.head.register_forward_hook(fail_later)
    with pytest.raises(KeyError):
        lesioned(model, joins, IMAGES)
    handle.remove()
    assert_untouched(model, hooks)
    with pytest.raises(RuntimeError):
        lesioned(model, joins, IMAGES[:, :2])
    assert_untouched(model, hooks)


# Accuracy.


class Voters(nn.Module):
    """A network whose logits can be worked out by hand: each branch adds a vote for a class."""

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


def voters(model: Voters) -> dict[str, Join]:
    """Return where the branches of voters join, by their names."""
    names = [f"voters.{index}" for index in range(len(model.voters))]
    images = torch.zeros(2, len(model.voters[0].bias))
    return dict(zip(names, joins_after(model, images, names), strict=True))


def test_correctness_of_a_network_that_is_worked_out_by_hand() -> None:
    model = Voters([[3.0, 0, 0], [0, 2.0, 0]])
    images = torch.tensor([[0.0, 0, 0], [0, 2, 0], [0, 0, 4]])
    # Logits [3, 2, 0], [3, 4, 0], [3, 2, 4]; without the first voter [0, 2, 0], [0, 4, 0],
    # [0, 2, 4]; without the second [3, 0, 0], [3, 2, 0], [3, 0, 4].
    labels = np.array([0, 1, 1])
    clean, without = correctness_of_lesions(model, voters(model), images.split(2), labels)
    assert clean.tolist() == [True, True, False]
    assert without.tolist() == [[False, True], [True, False], [False, False]]
    assert clean.dtype == without.dtype == bool


def test_a_number_of_images_other_than_that_of_labels() -> None:
    model = Voters([[1.0, 0, 0]])
    with pytest.raises(ValueError, match="got 3 images, expected 4"):
        correctness_of_lesions(model, voters(model), [torch.zeros(3, 3)], np.zeros(4, int))


def test_a_job_measures_the_chosen_images(tmp_path: Path) -> None:
    images = shapes(tmp_path / "split", 20)
    network, cut_points = mini("swin")
    blocks = mini_blocks("swin").table
    given = on_model(network, images, cut_points=cut_points, blocks=blocks)
    table = measure_lesion(given, {"images": 9, "seed": 1}, {"resamples": 100, "seed": 3})
    find_table("lesion").write(table, tmp_path / "table")
    read = find_table("lesion").read(tmp_path / "table")
    # Pools cannot be removed.
    units = blocks[blocks["kind"].isin(["msa", "mlp"])].reset_index(drop=True)
    pd.testing.assert_frame_equal(read[[*CUT_POINT]], units[[*CUT_POINT]], check_dtype=False)
    rows = rows_to_classify(images, 9, 1)
    # Each branch is that of the module of its name.
    clean, without = naively(network, [*units["name"]], images.normalize(rows, CENTER, SPREAD))
    found, *others = ((each.argmax(1).numpy() == images.labels[rows]) for each in (clean, *without))
    expected = accuracy_changes(found, np.stack(others, 1), 100, 3).assign(images=9)
    pd.testing.assert_frame_equal(read[[*expected]], expected, check_dtype=False, rtol=1e-12)
    # Of as many images, every model has the same drawn again, in the same order.
    weights = np.random.default_rng(3).multinomial(9, [1 / 9] * 9, size=100)
    changes = 100 * (np.stack(others, 1).astype(float) - found[:, None])
    kept = np.stack(read["change_resampled"], axis=1)
    np.testing.assert_allclose(kept, weights @ changes / 9, rtol=1e-6, atol=1e-9)


# Bad input.


def test_logits_that_are_no_numbers() -> None:
    sick = Voters([[0.0, 0.0], [float("nan"), 0.0]])
    images = torch.zeros(2, 2)
    assert refusal(correctness_of_lesions, sick, voters(sick), [images], np.zeros(2, int)) == (
        "The logits of the whole model are not finite for 2 of 2 images, so that no class can be "
        "told: check the checkpoint, and the mean and std of the data set."
    )


def test_logits_that_are_no_numbers_without_a_branch() -> None:
    class Divided(Voters):
        def forward(self, images: Tensor) -> Tensor:
            return images / (0 * images + self.voters[0](images[:, :1]))

    model = Divided([[1.0, 1.0, 1.0]])
    with pytest.raises(
        VitscopeError, match=r"of the model without voters\.0 are not finite for 1 "
    ):
        correctness_of_lesions(model, voters(model), [torch.ones(1, 3)], np.zeros(1, int))


def test_a_model_without_a_branch() -> None:
    assert refusal(joins_for_lesions, "mine", mini_blocks("vit").points[:1]) == (
        "models.mine: no cut point of the model has a residual branch, so that no unit can be "
        "removed: take the model out of the figures of the kind lesion."
    )


def test_a_join_that_the_network_never_comes_to() -> None:
    model, cut_points = mini("vit")
    (join, *_) = joins_for_lesions("vit", cut_points).values()
    (addition,) = join.additions
    elsewhere = replace(addition, operation=replace(addition.operation, nth=99))
    missing = replace(join, additions=(elsewhere,))
    with pytest.raises(VitscopeError, match=r"it never came to an addition in 'blocks\.0'"):
        lesioned(model, [join, missing], IMAGES)
