"""The line between two networks against closed forms, plain loops and their own predictions."""

from collections.abc import Callable
from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.special import logsumexp
from torch import Tensor, nn

from tests.helpers.refusals import refusal
from tests.helpers.splits import on_model
from tests.measures.interpolation.conftest import IMAGES
from vitscope.data.split import Split
from vitscope.measures.given import OnLine
from vitscope.measures.interpolation.compute import measure_interpolation
from vitscope.networks.running.line import moving_to
from vitscope.networks.running.predictions import predict
from vitscope.training.batches import AugmentedImages

SIZE, POINTS = 7, 5
SHARES = np.linspace(0, 1, POINTS)


def linear() -> nn.Module:
    return nn.Sequential(nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(48, 10))


def mlp() -> nn.Module:
    hidden = (nn.Linear(48, 16), nn.ReLU(), nn.Linear(16, 10))
    return nn.Sequential(nn.AdaptiveAvgPool2d(4), nn.Flatten(), *hidden)


def normed() -> nn.Module:
    """A network with norms, dropout, and a count that only its own images raise."""
    stem = (nn.Conv2d(3, 6, 3, 4), nn.BatchNorm2d(6, momentum=0.3), nn.ReLU(), nn.Dropout(0.5))
    end = (nn.Conv2d(6, 8, 3, 2), nn.BatchNorm2d(8, affine=False), nn.ReLU())
    return nn.Sequential(*stem, *end, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10))


def trained(build: Callable[[], nn.Module], seed: int) -> nn.Module:
    """A network with its own weights and running statistics, larger than they begin with."""
    torch.manual_seed(seed)
    network = build()
    with torch.no_grad():
        for each in network.parameters():
            each.mul_(2)
        network.train()(torch.randn(16, 3, 32, 32) * (1 + seed))
    return network.eval()


def permuted(network: nn.Module) -> nn.Module:
    """A copy of an `mlp` with its hidden units in another order."""
    other, order = deepcopy(network), torch.arange(16).roll(5)
    with torch.no_grad():
        other[2].weight.copy_(network[2].weight[order])
        other[2].bias.copy_(network[2].bias[order])
        other[4].weight.copy_(network[4].weight[:, order])
    return other


def measured(
    one: nn.Module,
    other: nn.Module,
    split: Split,
    training: AugmentedImages | None = None,
    images: int | None = None,
) -> pd.DataFrame:
    given = OnLine(on_model(one, split, batch_size=SIZE), ["other"], [other], training)
    return measure_interpolation(given, images, 0, POINTS, 1024)


def inputs_of(split: Split) -> Tensor:
    return torch.from_numpy((split.images(range(IMAGES)) / 255 - 0.5) / 0.25).float()


def test_a_linear_network_has_the_loss_of_mixed_logits(split: Split) -> None:
    one, other = trained(linear, 0), trained(linear, 1)
    pooled = nn.Sequential(*[*one][:2])(inputs_of(split)).double().numpy()
    ends = [
        pooled @ each[2].weight.detach().double().numpy().T + each[2].bias.detach().numpy()
        for each in (one, other)
    ]
    table = measured(one, other, split)
    assert table["reset"].tolist() == [False] * POINTS
    np.testing.assert_array_equal(table["share"], SHARES)
    rows = np.arange(IMAGES)
    losses, errors = [], []
    for share in SHARES:
        logits = (1 - share) * ends[0] + share * ends[1]
        losses.append((logsumexp(logits, axis=1) - logits[rows, split.labels]).mean())
        errors.append(100 * (logits.argmax(1) != split.labels).mean())
    np.testing.assert_allclose(table["nll"], losses, rtol=1e-5)
    np.testing.assert_allclose(table["error"], errors, atol=1e-9)
    # The NLL of a linear network is convex in its weights: no point lies above the line.
    assert table["nll_excess"].max() == 0
    expected = np.array(losses) - np.interp(SHARES, [0, 1], [losses[0], losses[-1]])
    np.testing.assert_allclose(table["nll_excess"], expected, atol=1e-5)


def test_the_ends_are_the_predictions_of_both(split: Split, training: AugmentedImages) -> None:
    pair = [trained(normed, seed) for seed in (0, 1)]
    table = measured(*pair, split, training)
    ends = table[~table["reset"] & table["share"].isin([0, 1])]
    given = on_model(pair[0], split)
    for network, (_, row) in zip(pair, ends.iterrows(), strict=True):
        found = predict(network, given.batches(range(IMAGES)), split.labels)
        assert row["nll"] == pytest.approx(found["nll"].mean(), abs=1e-6)
        wrong = 100 * (found["prediction"] != found["label"]).mean()
        assert row["error"] == pytest.approx(wrong, abs=1e-6)
        assert row["nll_excess"] == row["error_excess"] == 0


def test_a_network_and_its_copy_have_no_barrier(split: Split, training: AugmentedImages) -> None:
    network = trained(normed, 0)
    table = measured(network, deepcopy(network), split, training)
    for _, curve in table.groupby("reset"):
        assert curve["nll"].nunique() == 1
    np.testing.assert_allclose(table[["nll_excess", "error_excess"]], 0, atol=1e-12)


def test_permuted_units_are_the_same_network_behind_a_barrier(split: Split) -> None:
    one = trained(mlp, 0)
    # Train it on its images, so that what is between says less about them.
    pixels, labels = inputs_of(split), torch.from_numpy(split.labels)
    optimizer = torch.optim.Adam(one.parameters(), 0.01)
    for _ in range(60):
        optimizer.zero_grad()
        nn.functional.cross_entropy(one(pixels), labels).backward()
        optimizer.step()
    table = measured(one, permuted(one), split)
    assert table["nll"].iloc[0] == pytest.approx(table["nll"].iloc[-1], abs=1e-6)
    assert table["nll_excess"].max() > 1
    assert table["error_excess"].max() > 10


def test_reset_statistics_are_those_of_a_plain_loop(
    split: Split, training: AugmentedImages
) -> None:
    one, other = trained(normed, 0), trained(normed, 1)
    table = measured(one, other, split, training)
    reset = table[table["reset"]]
    assert len(table) == 2 * POINTS
    np.testing.assert_array_equal(reset["share"], SHARES)
    batches = [training.rows(first, first + SIZE)[0] for first in (0, SIZE)]
    for share, nll in zip(reset["share"], reset["nll"], strict=True):
        ours, theirs = ([*each.parameters()] for each in (one, other))
        mixed = deepcopy(one)
        with torch.no_grad():
            for each, first, second in zip(mixed.parameters(), ours, theirs, strict=True):
                each.copy_((1 - share) * first + share * second)
            # Statistics by hand: of each batch, whose maps are normalized by themselves.
            seen: dict[int, list[tuple[Tensor, Tensor]]] = {1: [], 5: []}
            for maps in batches:
                for place, module in enumerate(mixed):
                    if place in seen:
                        mean = maps.mean((0, 2, 3))
                        seen[place].append((mean, maps.var((0, 2, 3), unbiased=True)))
                        maps = nn.functional.batch_norm(
                            maps, None, None, module.weight, module.bias, training=True
                        )
                    else:
                        maps = module(maps)
            for place, found in seen.items():
                mean, var = (torch.stack(each).mean(0) for each in zip(*found, strict=True))
                mixed[place].running_mean.copy_(mean)
                mixed[place].running_var.copy_(var)
            loss = nn.functional.cross_entropy(
                mixed(inputs_of(split)), torch.from_numpy(split.labels)
            )
        assert nll == pytest.approx(loss.item(), rel=1e-4)
    assert (reset["nll"].to_numpy() != table.loc[~table["reset"], "nll"].to_numpy()).all()


def test_networks_are_as_they_were(split: Split, training: AugmentedImages) -> None:
    pair = [trained(normed, seed) for seed in (0, 1)]
    before = [deepcopy(each.state_dict()) for each in pair]
    measured(*pair, split, training)
    for network, state in zip(pair, before, strict=True):
        for name, each in network.state_dict().items():
            assert torch.equal(each, state[name]), name
        assert not any(module.training for module in network.modules())
    assert [norm.momentum for norm in pair[0] if isinstance(norm, nn.BatchNorm2d)] == [0.3, 0.1]


def test_without_statistics_or_images_nothing_is_reset(
    split: Split, training: AugmentedImages
) -> None:
    assert not measured(trained(mlp, 0), trained(mlp, 1), split, training)["reset"].any()
    assert not measured(trained(normed, 0), trained(normed, 1), split)["reset"].any()


class Masked(nn.Module):
    """A network with a mask of infinities, a count and a table, which are no weights."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 10)
        self.register_buffer("mask", torch.tensor([0.0, -torch.inf, 0.0]))
        self.register_buffer("count", torch.tensor(count))

    def forward(self, images: Tensor) -> Tensor:
        return self.layer(images.mean((2, 3)) * self.mask.exp())


def test_what_both_share_stays_and_numbers_without_a_point_are_those_of_the_first(
    split: Split,
) -> None:
    one, other = trained(lambda: Masked(3), 0), trained(lambda: Masked(8), 1)
    assert np.isfinite(measured(one, other, split)["nll"]).all()
    with moving_to(one, other) as move:
        move(0.5)
        assert one.count == 3
        assert one.mask[1] == -torch.inf
        middle = (other.layer.weight + start_of(Masked, 0).layer.weight) / 2
        torch.testing.assert_close(one.layer.weight, middle)
    torch.testing.assert_close(one.layer.weight, start_of(Masked, 0).layer.weight)


def start_of(kind: type[Masked], seed: int) -> Masked:
    return trained(lambda: kind(3), seed)


def test_logits_that_overflow_leave_a_gap(split: Split) -> None:
    """One layer of each is huge where the other is zero: only their products between overflow."""
    one, other = trained(mlp, 0), trained(mlp, 1)
    with torch.no_grad():
        for network, (first, second) in zip((one, other), ((1e30, 0), (0, 1e30)), strict=True):
            network[2].weight.fill_(first).mul_(torch.arange(16)[:, None] - 7.5)
            network[4].weight.fill_(second)
    table = measured(one, other, split)
    for column in ("nll", "nll_excess", "error", "error_excess"):
        assert table[column].notna().tolist() == [True, False, False, False, True]


def test_images_are_drawn_as_for_predictions(split: Split) -> None:
    table = measured(trained(mlp, 0), trained(mlp, 1), split, images=11)
    assert set(table["images"]) == {11}


class Heads(nn.Module):
    """A network whose number of heads is in no weight."""

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 8, 8, 8)
        self.attention = nn.MultiheadAttention(8, heads, batch_first=True)
        self.head = nn.Linear(8, 10)

    def forward(self, images: Tensor) -> Tensor:
        tokens = self.patches(images).flatten(2).transpose(1, 2)
        return self.head(self.attention(tokens, tokens, tokens)[0].mean(1))


def test_networks_without_a_line_are_refused(split: Split) -> None:
    one = trained(mlp, 0)
    wider = nn.Sequential(*[*mlp()][:2], nn.Linear(48, 17), nn.ReLU(), nn.Linear(17, 10))
    assert refusal(measured, one, wider, split) == (
        "'net' and 'other' have no line between their weights: '2.weight' has the shape 16x48 in "
        "the first and the shape 17x48 in the second, allowed: two networks whose weights have the "
        "same names and shapes."
    )
    said = refusal(measured, one, trained(linear, 0), split)
    assert "'2.weight' has the shape 16x48 in the first and the shape 10x48 in the second" in said
    deeper = nn.Sequential(*mlp(), nn.BatchNorm1d(10))
    assert "'5.weight' has none in the first and the shape 10 in the second" in refusal(
        measured, one, deeper, split
    )
    heads = [trained(lambda count=count: Heads(count), 0) for count in (2, 4)]
    before = deepcopy(heads[0].state_dict())
    assert refusal(measured, *heads, split) == (
        "'net' with the weights of 'other' computes something else than 'other': a line between "
        "weights needs two networks that are built alike."
    )
    assert all(torch.equal(each, before[name]) for name, each in heads[0].state_dict().items())
