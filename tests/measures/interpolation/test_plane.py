"""The plane through three networks against closed forms, the line, and their own predictions."""

from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.special import logsumexp
from torch import nn

from tests.helpers.refusals import refusal
from tests.helpers.splits import on_model
from tests.measures.interpolation.conftest import IMAGES
from tests.measures.interpolation.test_compute import (
    SIZE,
    Heads,
    inputs_of,
    linear,
    mlp,
    normed,
    permuted,
    trained,
)
from vitscope.data.split import Split
from vitscope.measures.given import OnLine
from vitscope.measures.interpolation.compute import measure_interpolation, measure_plane
from vitscope.networks.running.predictions import predict
from vitscope.training.batches import AugmentedImages

# A step is a quarter of the triangle's width, so that its first side lies on the grid.
POINTS, MARGIN = 7, 0.25


def on_line(
    networks: list[nn.Module], split: Split, training: AugmentedImages | None = None
) -> OnLine:
    first, *others = networks
    given = on_model(first, split, batch_size=SIZE)
    return OnLine(given, ["second", "third"][: len(others)], others, training)


def measured(
    networks: list[nn.Module], split: Split, training: AugmentedImages | None = None
) -> pd.DataFrame:
    return measure_plane(on_line(networks, split, training), None, 0, POINTS, MARGIN, 1024)


def vector(network: nn.Module) -> np.ndarray:
    weights = [each.detach().double().flatten() for each in network.parameters()]
    return torch.cat(weights).numpy()


def test_a_linear_network_has_the_loss_of_mixed_logits(split: Split) -> None:
    networks = [trained(linear, seed) for seed in range(3)]
    table = measured(networks, split)
    assert len(table) == 3 + POINTS**2
    assert not table["reset"].any()
    pooled = nn.Sequential(*[*networks[0]][:2])(inputs_of(split)).double().numpy()
    logits = [
        pooled @ each[2].weight.detach().double().numpy().T + each[2].bias.detach().numpy()
        for each in networks
    ]
    rows = np.arange(IMAGES)
    for at in table.itertuples():
        shares = (1 - at.other_share - at.third_share, at.other_share, at.third_share)
        mixed = sum(share * each for share, each in zip(shares, logits, strict=True))
        loss = (logsumexp(mixed, axis=1) - mixed[rows, split.labels]).mean()
        assert at.nll == pytest.approx(loss, rel=1e-5)
        error = 100 * (mixed.argmax(1) != split.labels).mean()
        assert at.error == pytest.approx(error, abs=1e-9)


def test_places_are_those_of_orthonormal_axes(split: Split) -> None:
    networks = [trained(mlp, seed) for seed in range(3)]
    table = measured(networks, split)
    start, *ends = map(vector, networks)
    sides = np.array([end - start for end in ends])
    # Rows of `axes` are orthonormal, with the signs of Gram-Schmidt.
    basis, steps = np.linalg.qr(sides.T)
    axes = (basis * np.sign(np.diag(steps))).T
    corners = table[table["network"] > 0].sort_values("network")
    expected = np.concatenate([[[0, 0]], sides @ axes.T])
    np.testing.assert_allclose(corners[["x", "y"]], expected, atol=1e-9)
    # Points are as far from each other as their weights.
    shares = table[["other_share", "third_share"]].to_numpy()
    np.testing.assert_allclose((shares @ sides) @ axes.T, table[["x", "y"]], atol=1e-9)
    grid = table[table["network"] == 0]
    low, high = expected.min(0), expected.max(0)
    around = MARGIN * (high - low)
    np.testing.assert_allclose(grid[["x", "y"]].min(), low - around, atol=1e-9)
    np.testing.assert_allclose(grid[["x", "y"]].max(), high + around, atol=1e-9)


def test_networks_have_their_own_scores_and_are_as_they_were(
    split: Split, training: AugmentedImages
) -> None:
    networks = [trained(normed, seed) for seed in range(3)]
    before = [deepcopy(each.state_dict()) for each in networks]
    table = measured(networks, split, training)
    for network, state in zip(networks, before, strict=True):
        for name, each in network.state_dict().items():
            assert torch.equal(each, state[name]), name
    assert (table["reset"] == (table["network"] == 0)).all()
    given = on_model(networks[0], split, batch_size=SIZE)
    for number, network in enumerate(networks, 1):
        (row,) = table[table["network"] == number].itertuples()
        found = predict(network, given.batches(range(IMAGES)), split.labels)
        assert row.nll == pytest.approx(found["nll"].mean(), abs=1e-12)
        wrong = 100 * (found["prediction"] != found["label"]).mean()
        assert row.error == pytest.approx(wrong, abs=1e-12)


@pytest.mark.parametrize("reset", [False, True])
def test_a_side_of_the_triangle_is_the_line_between_two(
    split: Split, training: AugmentedImages, reset: bool
) -> None:
    networks = [trained(normed, seed) for seed in range(3)]
    given = training if reset else None
    plane = measured(networks, split, given)
    line = measure_interpolation(on_line(networks[:2], split, given), None, 0, 5, 1024)
    side = plane[(plane["network"] == 0) & np.isclose(plane["y"], 0)]
    side = side[side["other_share"].between(-1e-9, 1 + 1e-9)]
    line = line[line["reset"] == reset]
    np.testing.assert_allclose(side["other_share"], line["share"], atol=1e-9)
    np.testing.assert_allclose(side["nll"], line["nll"], rtol=1e-5)
    np.testing.assert_allclose(side["error"], line["error"], atol=1e-9)


def test_permuted_units_are_the_same_network_in_another_basin(split: Split) -> None:
    one = trained(mlp, 0)
    pixels, labels = inputs_of(split), torch.tensor(split.labels)
    optimizer = torch.optim.Adam(one.parameters(), 0.01)
    for _ in range(60):
        optimizer.zero_grad()
        nn.functional.cross_entropy(one(pixels), labels).backward()
        optimizer.step()
    table = measured([one, permuted(one), trained(mlp, 1)], split)
    first, second = (table.loc[table["network"] == number, "nll"].item() for number in (1, 2))
    assert first == pytest.approx(second, abs=1e-6)
    between = table[np.isclose(table["y"], 0) & np.isclose(table["other_share"], 0.5)]
    assert between["nll"].item() > first + 1


def test_networks_without_a_plane_are_refused(split: Split) -> None:
    one, other = trained(mlp, 0), trained(mlp, 1)
    halfway = deepcopy(one)
    with torch.no_grad():
        for each, end in zip(halfway.parameters(), other.parameters(), strict=True):
            each.lerp_(end, 0.5)
    for networks in (
        [one, deepcopy(one), other],
        [one, other, deepcopy(one)],
        [one, other, deepcopy(other)],
        [one, other, halfway],
        [one, one, other],
        [deepcopy(one) for _ in range(3)],
    ):
        assert refusal(measured, networks, split) == (
            "The weights of 'net', 'second' and 'third' lie on one line, or two of them are the "
            "same: a plane needs three networks that span a triangle."
        )
    wider = nn.Sequential(*[*mlp()][:2], nn.Linear(48, 17), nn.ReLU(), nn.Linear(17, 10))
    said = refusal(measured, [one, other, wider], split)
    assert said.startswith("'net' and 'third' have no line between their weights: '2.weight' has")
    heads = [trained(lambda count=count: Heads(count), count) for count in (2, 2, 4)]
    said = refusal(measured, [*heads[:1], trained(lambda: Heads(2), 7), heads[2]], split)
    assert said.startswith("'net' with the weights of 'third' computes something else")
