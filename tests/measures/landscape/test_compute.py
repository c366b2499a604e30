"""Landscapes against closed forms, the authors' normalization and plain evaluations."""

from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import kstest
from torch import Tensor, nn

from tests.helpers import networks
from tests.helpers.augmented import augmented
from tests.helpers.recording import record_here
from tests.helpers.refusals import refusal
from tests.helpers.studies import mini_with
from vitscope.jobs.tables import find_table
from vitscope.measures import registry
from vitscope.measures.directions import moving_weights, random_direction
from vitscope.measures.given import OnLoss
from vitscope.measures.landscape import compute
from vitscope.measures.landscape.compute import (
    FAST_BFLOAT16,
    losses_at,
    measure_landscape,
    pick_landscape_precision,
)
from vitscope.measures.landscape.measure import (
    LandscapeSettings,
    Point,
    coordinates,
    grid,
    landscape_points_for_claims,
)
from vitscope.measures.scores import scores_of
from vitscope.networks.running.cuda_graphs import WARM_UP
from vitscope.networks.running.predictions import predict
from vitscope.studies.loading import BUNDLED_STUDIES, load_study
from vitscope.training.batches import AugmentedImages

CPU = torch.device("cpu")
SEED, DECAY = 3, 0.05
OWN: dict[str, Any] = {"seed": SEED, "batch_size": 16, "precision": "float32"}


def given_of(model: nn.Module, images: AugmentedImages) -> OnLoss:
    return OnLoss(model, images, CPU, say=lambda text: None)


def losses(
    model: nn.Module,
    images: AugmentedImages,
    points: Sequence[Point],
    decay: float = DECAY,
    **own: Any,
) -> pd.DataFrame:
    return losses_at(given_of(model, images), points, LandscapeSettings(**OWN | own), decay)


@pytest.fixture
def images(tmp_path: Path) -> AugmentedImages:
    rng = np.random.default_rng(0)
    targets = rng.dirichlet(np.full(10, 0.2), 40)
    return augmented(tmp_path / "images", rng.normal(size=(40, 3, 32, 32)), targets)


@pytest.fixture
def small(tmp_path: Path) -> AugmentedImages:
    """Return images of 12 values; their number, 37, is not a multiple of any batch size."""
    rng = np.random.default_rng(1)
    targets = rng.dirichlet(np.ones(4), 37)
    return augmented(tmp_path / "small", rng.normal(size=(37, 3, 2, 2)), targets)


def linear(scale: float = 1.0) -> nn.Module:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(12, 4))
    with torch.no_grad():
        model[1].weight.mul_(scale)
    return model


@given(st.integers(1, 100), st.floats(1e-3, 1e3))
def test_steps_are_symmetric_about_an_exact_zero(half: int, radius: float) -> None:
    steps = coordinates(2 * half + 1, radius)
    assert len(steps) == 2 * half + 1
    assert steps[half] == 0
    assert steps == [-step for step in reversed(steps)]
    assert steps[-1] == pytest.approx(radius)
    np.testing.assert_allclose(np.diff(steps), radius / half, rtol=1e-9)


def test_the_grid_is_in_the_order_of_the_authors(grids: pd.DataFrame) -> None:
    theirs = grids.loc[grids["model"] == "vit", ["x", "y"]]
    np.testing.assert_allclose(grid(21, 1.0), theirs, atol=1e-12)


@pytest.mark.parametrize(("points", "step", "count"), [(11, 0.2, 5 + 20), (21, 0.1, 5 + 28)])
def test_claims_are_about_the_middle_and_a_ring(points: int, step: float, count: int) -> None:
    found = landscape_points_for_claims(points, 1.0)
    assert len(found) == len(set(found)) == count
    steps = np.arange(-(points // 2), points // 2 + 1) * step
    x, y = (each.ravel() for each in np.meshgrid(steps, steps))
    distance = np.hypot(x, y)
    chosen = (distance < 1.01 * step) | (abs(distance - 0.5) < 0.501 * step)
    np.testing.assert_allclose(found, np.column_stack([x, y])[chosen], atol=1e-12)
    parts = [
        landscape_points_for_claims(points, 1.0, rows) for rows in (range(4), range(4, points))
    ]
    assert [*parts[0], *parts[1]] == found


def normalized_as_the_authors(drawn: Tensor, weights: Tensor) -> Tensor:
    ratio = torch.norm(weights, dim=0, keepdim=True) / (
        torch.norm(drawn, dim=0, keepdim=True) + 1e-7
    )
    return ratio * drawn


@pytest.mark.parametrize("name", ["resnet", "vit", "swin"])
def test_directions_have_the_norms_of_the_weights_by_filter(name: str) -> None:
    model, _ = networks.mini(name)
    moving = 0
    for key, weights in model.named_parameters():
        found = random_direction(key, weights, SEED, 0)
        assert found.shape == weights.shape
        if weights.ndim < 2 or "pos_embed" in key or "relative_position" in key:
            assert not found.any()
            continue
        moving += 1
        torch.testing.assert_close(found.norm(dim=0), weights.norm(dim=0), rtol=1e-4, atol=1e-6)
        # The direction is normalized: the authors' normalization leaves it as it is.
        torch.testing.assert_close(
            normalized_as_the_authors(found, weights), found, rtol=1e-3, atol=1e-6
        )
    assert moving > 5


@pytest.mark.parametrize("shape", [(7, 5), (6, 4, 3, 3), (1, 1, 8)])
def test_the_scale_is_that_of_the_authors(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    weights, other = torch.randn(shape), torch.randn(shape)
    one, two = (random_direction("w", each, SEED, 0) for each in (weights, other))
    # Both are the same draw, so that scaling one to the other's weights gives the other.
    torch.testing.assert_close(normalized_as_the_authors(one, other), two, rtol=1e-5, atol=1e-6)
    assert (one * two >= 0).all()


def test_directions_are_gaussian() -> None:
    # A column of ones has the mean norm of a Gaussian column, so that the scale is nearly 1.
    found = random_direction("w", torch.ones(2000, 50), SEED, 0).flatten()
    assert kstest(found[::7].numpy(), "norm").pvalue > 0.01


def test_directions_hang_on_seed_name_axis_and_nothing_else() -> None:
    weights = torch.ones(5, 4)
    first = random_direction("w", weights, SEED, 0)
    torch.rand(11)
    assert torch.equal(first, random_direction("w", weights, SEED, 0))
    for name, seed, axis in (("v", SEED, 0), ("w", SEED + 1, 0), ("w", SEED, 1)):
        assert not torch.equal(first, random_direction(name, weights, seed, axis))
    one = nn.Sequential(OrderedDict(a=nn.Linear(4, 4), b=nn.Linear(4, 4)))
    other = nn.Sequential(OrderedDict(b=one.b, a=one.a))
    with moving_weights(one, SEED) as move:
        move(1, 1)
        moved = {key: value.clone() for key, value in one.state_dict().items()}
    with moving_weights(other, SEED) as move:
        move(1, 1)
        for key, value in other.state_dict().items():
            assert torch.equal(value, moved[key])


@pytest.mark.parametrize("name", ["resnet", "swin"])
def test_weights_are_where_the_plane_says_and_return_to_the_bit(name: str) -> None:
    model, _ = networks.mini(name)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    along = [
        {key: random_direction(key, value, SEED, axis) for key, value in model.named_parameters()}
        for axis in (0, 1)
    ]
    with moving_weights(model, SEED) as move:
        for x, y in [(0.3, -0.7), (-1.0, 0.2), (0.0, 0.0)]:
            move(x, y)
            for key, value in model.state_dict().items():
                steps = x * along[0][key] + y * along[1][key] if key in along[0] else 0
                torch.testing.assert_close(value, before[key] + steps, rtol=1e-5, atol=1e-6)
        for key, value in model.state_dict().items():
            assert torch.equal(value, before[key])
        move(0.1, 0.1)
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())


def test_weights_return_after_a_failure_too() -> None:
    model = linear()
    before = model[1].weight.detach().clone()

    def fail() -> None:
        with moving_weights(model, SEED) as move:
            move(1, 1)
            raise RuntimeError("on the way")

    with pytest.raises(RuntimeError, match="on the way"):
        fail()
    assert torch.equal(model[1].weight, before)


def test_each_pair_of_directions_has_axes_of_its_own() -> None:
    model = linear()
    weight = model[1].weight.detach().clone()
    first, second = (random_direction("1.weight", weight, SEED, axis) for axis in (4, 5))
    with moving_weights(model, SEED, 2) as move:
        move(0.3, -0.7)
        torch.testing.assert_close(model[1].weight, weight + 0.3 * first - 0.7 * second)
    drawn = torch.stack([random_direction("1.weight", weight, SEED, axis) for axis in range(10)])
    assert len(torch.unique(drawn, dim=0)) == 10


def by_hand(
    model: nn.Module, images: AugmentedImages, x: float, y: float, pair: int = 0
) -> dict[str, float]:
    """Return the loss of a linear model at a point, computed from its weights in float64."""
    weight = model[1].weight.detach()
    axes = (2 * pair, 2 * pair + 1)
    first, second = (
        random_direction("1.weight", weight, SEED, axis).double().numpy() for axis in axes
    )
    moved = weight.double().numpy() + x * first + y * second
    bias = model[1].bias.detach().double().numpy()
    pixels, targets = (each.double().numpy() for each in images.rows(0, len(images)))
    logits = pixels.reshape(len(pixels), -1) @ moved.T + bias
    log_probability = logits - logsumexp(logits, axis=1, keepdims=True)
    nll = -(targets * log_probability).sum(axis=1).mean()
    norms = np.array([np.linalg.norm(moved), np.linalg.norm(bias)])
    found = log_probability.argmax(axis=1) == targets.argmax(axis=1)
    return {
        "nll": nll,
        "l2": norms.sum(),
        "l2_squared": np.square(norms).sum(),
        "loss": nll + DECAY * norms.sum(),
        "loss_squared": nll + DECAY / 2 * np.square(norms).sum(),
        "accuracy": found.mean(),
    }


def test_a_linear_model_has_the_loss_that_follows_by_hand(small: AugmentedImages) -> None:
    model = linear()
    table = losses(model, small, grid(5, 2.0))
    expected = pd.DataFrame([by_hand(model, small, x, y) for x, y in grid(5, 2.0)])
    np.testing.assert_array_equal(table[["x", "y"]], grid(5, 2.0))
    for column in expected:
        np.testing.assert_allclose(table[column], expected[column], rtol=2e-6, err_msg=column)
    assert table["nll"].nunique() == 25


@pytest.mark.parametrize("name", ["resnet", "vit"])
def test_at_the_origin_all_scores_are_those_of_the_model_to_the_bit(
    name: str, images: AugmentedImages
) -> None:
    model, _ = networks.mini(name)
    (row,) = losses(model, images, [(0.0, 0.0)]).to_dict("records")
    targets = images.rows(0, 40)[1]
    batches = [pixels for pixels, _ in images.batches(16)]
    predictions = predict(model, batches, targets.argmax(1).numpy())
    for score, value in scores_of(predictions, 10).items():
        if score != "nll":
            np.testing.assert_equal(row[score], value, err_msg=score)
    with torch.inference_mode():
        logits = torch.cat([model(batch) for batch in batches]).double()
    loss = nn.functional.cross_entropy(logits, targets.double(), reduction="none")
    assert row["nll"] == pytest.approx(loss.mean().item(), rel=1e-14)


def test_statistics_of_batch_normalization_stay(images: AugmentedImages) -> None:
    model, _ = networks.mini("resnet")
    before = {key: value.clone() for key, value in model.named_buffers()}
    losses(model.train(), images, grid(3, 1.0))
    assert len(before) > 10
    assert all(torch.equal(value, before[key]) for key, value in model.named_buffers())


def test_without_weights_that_move_all_points_are_alike(small: AugmentedImages) -> None:
    class Biased(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bias = nn.Parameter(torch.arange(4.0))
            self.pos_embed = nn.Parameter(torch.ones(3, 4))

        def forward(self, pixels: Tensor) -> Tensor:
            return self.bias + self.pos_embed.sum(0) * pixels.mean((1, 2, 3))[:, None]

    table = losses(Biased(), small, grid(3, 1.0))
    assert (table.drop(columns=["x", "y"]).nunique() <= 1).all()


def test_bfloat16_is_near_and_never_uses_the_weights_of_another_point(
    images: AugmentedImages,
) -> None:
    model, _ = networks.mini("vit")
    points = [(0.0, 0.0), (0.5, -0.5), (1.0, 1.0)]
    exact = losses(model, images, points)
    fast = losses(model, images, points, precision="bfloat16")
    assert not (fast["nll"] == exact["nll"]).any()
    np.testing.assert_allclose(fast["nll"], exact["nll"], rtol=0.01)
    np.testing.assert_array_equal(fast["l2"], exact["l2"])
    alone = [losses(model, images, [p], precision="bfloat16") for p in points]
    np.testing.assert_array_equal(pd.concat(alone)["nll"], fast["nll"])
    assert set(fast["precision"]) == {"bfloat16"}
    assert set(exact["precision"]) == {"float32"}


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", ["resnet", "vit"])
def test_a_recording_serves_all_points(
    monkeypatch: pytest.MonkeyPatch, name: str, precision: str, images: AugmentedImages
) -> None:
    model, _ = networks.mini(name)
    points = grid(3, 1.0)[:4]
    expected = losses(model, images, points, precision=precision)
    replays, read, rows = record_here(monkeypatch), [], AugmentedImages.rows
    monkeypatch.setattr(AugmentedImages, "rows", lambda *asked: read.append(asked) or rows(*asked))
    found = losses(model, images, points, precision=precision)
    pd.testing.assert_frame_equal(found, expected, check_exact=True)
    # At each point, 40 images are two batches of 16 and one of 8.
    assert replays == [2 * 4 - WARM_UP, 4 - WARM_UP]
    # One read is for the size of an image. Then the batches are read once for all points or, if
    # they are too large to be kept, at each point.
    assert len(read) == 1 + 3
    monkeypatch.setattr(compute, "KEPT_BYTES", 0)
    losses(model, images, points, precision=precision)
    assert len(read) == 2 * 1 + 3 + 3 * len(points)


def test_auto_is_bfloat16_where_the_processor_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert pick_landscape_precision("float32", CPU) == "float32"
    assert pick_landscape_precision("bfloat16", CPU) == "bfloat16"
    for has in FAST_BFLOAT16:
        features = {has: True, "avx2": True}
        monkeypatch.setattr(torch.cpu, "get_capabilities", features.copy, raising=False)
        assert pick_landscape_precision("auto", CPU) == "bfloat16"
    features = {"avx2": True, "amx_bf16": False}
    monkeypatch.setattr(torch.cpu, "get_capabilities", features.copy)
    assert pick_landscape_precision("auto", CPU) == "float32"
    # Some releases of torch do not know what the processor can do.
    monkeypatch.delattr(torch.cpu, "get_capabilities")
    assert pick_landscape_precision("auto", CPU) == "float32"


def test_where_logits_overflow_scores_are_null(small: AugmentedImages, tmp_path: Path) -> None:
    table = losses(linear(1e18), small, [(0.0, 0.0), (1e21, 1e21)])
    find_table("landscape").write(table.assign(model="net"), tmp_path / "table")
    inside, outside = find_table("landscape").read(tmp_path / "table").to_dict("records")
    assert inside["nll"] > 1e16
    assert inside["accuracy"] >= 0
    known = {"model", "direction", "x", "y", "images", "clean", "precision", "weight_decay"}
    known |= {"l2", "l2_squared"}
    for column in set(find_table("landscape").columns) - known:
        assert np.isnan(outside[column]), column
    assert outside["l2"] > 1e30


def test_a_loss_that_is_not_finite_at_the_trained_weights_is_refused(
    small: AugmentedImages,
) -> None:
    model = linear()
    with torch.no_grad():
        model[1].weight.fill_(3e38)
    assert refusal(losses, model, small, grid(3, 1.0)) == (
        "The loss of the Sequential on augmented images is not finite at its trained weights: give "
        "a checkpoint of a training that did not diverge."
    )
    assert (model[1].weight == 3e38).all()


def test_the_table_says_what_the_loss_is_of(tmp_path: Path) -> None:
    clean = augmented(tmp_path / "clean", np.ones((5, 3, 2, 2)), np.eye(4)[:1].repeat(5, 0), True)
    table = losses(linear(), clean, [(0.0, 0.0)], decay=0)
    (row,) = table.to_dict("records")
    assert row["clean"]
    assert row["images"] == 5
    assert row["weight_decay"] == 0
    assert row["loss"] == row["loss_squared"] == row["nll"]
    assert row["l2"] > 0


def measured(
    images: AugmentedImages, jobs: Sequence[tuple[int, int]], **settings: Any
) -> list[pd.DataFrame]:
    given = given_of(linear(), images)
    return [
        measure_landscape(given, LandscapeSettings(**OWN | settings), rows, DECAY) for rows in jobs
    ]


def test_jobs_measure_rows_of_the_grid_which_give_the_same_bits_together(
    small: AugmentedImages,
) -> None:
    parts = measured(small, ((0, 1), (1, 4), (4, 5)), points=5, radius=2.0, directions=1)
    table = pd.concat(parts, ignore_index=True)
    whole = losses(linear(), small, grid(5, 2.0))
    pd.testing.assert_frame_equal(table, whole, check_exact=True)


def test_other_pairs_of_directions_have_the_points_that_claims_are_about(
    small: AugmentedImages,
) -> None:
    parts = measured(small, ((0, 3), (3, 9)), points=9, radius=1.0, directions=3)
    table = pd.concat(parts).sort_values(["direction", "y", "x"], ignore_index=True)
    alone = losses(linear(), small, grid(9, 1.0))
    pd.testing.assert_frame_equal(table[table["direction"] == 0], alone, check_exact=True)
    # In the first row of the grid, only the first pair of directions has points.
    assert set(parts[0].query("y == -1")["direction"]) == {0}
    for pair in (1, 2):
        rows = table[table["direction"] == pair]
        assert [*zip(rows["x"], rows["y"], strict=True)] == landscape_points_for_claims(9, 1.0)
        expected = [
            by_hand(linear(), small, x, y, pair)["loss"]
            for x, y in landscape_points_for_claims(9, 1.0)
        ]
        np.testing.assert_allclose(rows["loss"], expected, rtol=2e-6)


def test_it_is_of_training_images() -> None:
    study = load_study(BUNDLED_STUDIES / "mini.yaml")
    assert registry.declared("landscape").split(study) == "train"


def test_only_its_rows_depend_on_how_many_a_job_measures(tmp_path: Path) -> None:
    def given(rows_per_job: int) -> dict[str, Any]:
        plane = {"kind": "landscape", "models": ["resnet"]}
        own = {"landscape": {"points": 5, "rows_per_job": rows_per_job}}
        path = mini_with(tmp_path, buildups=None, figures={"plane": plane}, analysis=own)
        return registry.declared("landscape").measuring(load_study(path), "resnet", 0)

    one, two = given(1), given(2)
    assert (one.pop("rows"), two.pop("rows")) == ([0, 1], [0, 2])
    assert one == two
    assert "rows_per_job" not in one["settings"]
