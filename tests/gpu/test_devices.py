"""Every metric on a CUDA device, or on several threads, against the same on a thread of the CPU.

The bodies also run without a GPU, so that they are known to work: on the CPU in batches of another
size, the step of training in double precision, and the Hessian, whose batch is part of what it is,
a second time. Both pass the same tolerances, which are relative to the largest value of a metric:

- feature maps, variances, amplitudes, losses and probabilities: 1e-4 (float32 sums in another
  order); the HSIC, which is a difference of such sums: 1e-3;
- eigenvalues: 1e-3, which is the tolerance that they are iterated to; moments of the density: 1e-3;
- accuracies: at most one image in fifty may be classified in another way;
- a step of training: 1e-3 of the gradient, and 1e-4 of the loss.
"""

import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
import torch
from torch import nn

from tests.gpu import needs_cuda
from tests.helpers.networks import every_mini, mini_blocks
from vitscope.data.building import build_split_file
from vitscope.data.split import Split, known_labels
from vitscope.files.tensors import TensorFile
from vitscope.measures.attention import compute as attention
from vitscope.measures.attention.measure import VALUES
from vitscope.measures.branches.lesion import correctness_of_lesions, joins_for_lesions
from vitscope.measures.cka import compute as cka
from vitscope.measures.classification.fit import fit_losses
from vitscope.measures.disturbed.classify import Disturb, shares_found
from vitscope.measures.disturbed.frequency_noise import noise_disturbance
from vitscope.measures.disturbed.occlusion import list_patch_changes, patch_disturbance
from vitscope.measures.feature_variance import compute as feature_variance
from vitscope.measures.fourier import compute as fourier
from vitscope.measures.given import OnLatents, OnLoss, OnModel
from vitscope.measures.hessian.compute import measure_hessian, measure_hessian_density
from vitscope.measures.landscape.compute import losses_at
from vitscope.measures.landscape.measure import LandscapeSettings
from vitscope.networks.building.networks import plain_attention
from vitscope.networks.checkpoints.conversion import convert, load_converted_model
from vitscope.networks.running.device import pick_device
from vitscope.networks.running.extraction import write_latents
from vitscope.networks.running.predictions import predict
from vitscope.package_data import ROOT
from vitscope.studies.loading import BUNDLED_STUDIES, load_study
from vitscope.training.batches import AugmentedImages, write_augmented_batches

NUMBERS, ACCURACY, EIGENVALUES, GRADIENT = 1e-4, 0.02, 1e-3, 1e-3
IMAGES, BATCH, OTHER_BATCH = 48, 16, 12

Array = npt.NDArray[Any]
pytestmark = pytest.mark.nightly

# A device, the images of a batch on it, and threads of the CPU.
Side = tuple[str, int, int]
ALONE: Side = ("cpu", BATCH, 1)

some_models = pytest.mark.parametrize("name", ["vit", "resnet"])


@pytest.fixture(
    params=[
        pytest.param(("cuda", BATCH, 1), id="cuda", marks=needs_cuda),
        pytest.param(("cpu", OTHER_BATCH, 1), id="cpu"),
        pytest.param(("cpu", BATCH, 4), id="threads"),
    ]
)
def other(request: pytest.FixtureRequest) -> Iterator[Side]:
    """The side that is compared with the CPU."""
    before = torch.get_num_threads()
    yield request.param
    torch.set_num_threads(before)


STUDY = load_study(BUNDLED_STUDIES / "mini.yaml")
VIT = STUDY.models["vit"]


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> Split:
    path = tmp_path_factory.mktemp("data") / "test.safetensors"
    dataset = asdict(STUDY.data["shapes32"]) | {"splits": {"test": {"images": IMAGES, "seed": 0}}}
    build_split_file("shapes32", dataset, "test", path)
    return Split(path)


@pytest.fixture(scope="module")
def drawn(split: Split, tmp_path_factory: pytest.TempPathFactory) -> AugmentedImages:
    path = tmp_path_factory.mktemp("drawn") / "images.safetensors"
    recipe = asdict(STUDY.recipe("vit")) | {"images": None, "batch_size": BATCH}
    write_augmented_batches(split, recipe, IMAGES, 0, path, mean=VIT.mean, std=VIT.std)
    return AugmentedImages(path)


def trained(name: str) -> nn.Module:
    """Return a bundled model, its weights of the end of training."""
    network = STUDY.network(name)
    weights = ROOT / STUDY.models[name].checkpoint["bundled"]
    with tempfile.TemporaryDirectory() as folder:
        converted = Path(folder) / "model.safetensors"
        convert(weights, network, converted, label=name, origin="bundled")
        return load_converted_model(converted, network)


def batches(split: Split, size: int) -> Iterator[torch.Tensor]:
    return split.batches(range(IMAGES), size, VIT.mean, VIT.std)


def assert_close(found: Array, expected: Array, tolerance: float) -> None:
    """Compare numbers, over the largest one of those that are expected.

    A map of one position has no variance on either side.
    """
    there = np.isfinite(expected)
    assert there.any()
    np.testing.assert_array_equal(np.isfinite(found), there)
    scale = np.abs(expected[there]).max()
    assert np.abs(found - expected)[there].max() <= tolerance * scale


def assert_columns_close(found: pd.DataFrame, expected: pd.DataFrame, *columns: str) -> None:
    for column in columns:
        assert_close(found[column].to_numpy(float), expected[column].to_numpy(float), NUMBERS)


def on(side: Side) -> tuple[torch.device, int]:
    device, batch, threads = side
    torch.set_num_threads(threads)
    return pick_device(device), batch


def latents_of(split: Split, name: str, side: Side, path: Path) -> TensorFile:
    model, (device, size) = trained(name), on(side)
    found = mini_blocks(name)
    shapes = list(found.table[["channels", "height", "width"]].itertuples(index=False, name=None))
    write_latents(model, found.points, shapes, batches(split, size), IMAGES, path, device=device)
    return TensorFile(path)


@every_mini
def test_latents_and_their_numbers(split: Split, other: Side, name: str, tmp_path: Path) -> None:
    ours = latents_of(split, name, ALONE, tmp_path / "cpu")
    theirs = latents_of(split, name, other, tmp_path / "other")
    assert ours.names == theirs.names
    for point in ours.names:
        assert_close(theirs.array(point), ours.array(point), NUMBERS)
    given = [OnLatents(latents, 0) for latents in (theirs, ours)]
    variance = [
        feature_variance.measure_feature_variance(each)["variance"].to_numpy() for each in given
    ]
    assert_close(*variance, NUMBERS)
    # The logarithm of a single channel's amplitude has no bound near zero: compare what a figure
    # shows, the mean over images.
    amplitude = [
        fourier.measure_fourier(each, False, None)
        .groupby(["index", "quantity", "step"], sort=False)["value"]
        .mean()
        .to_numpy()
        for each in given
    ]
    assert_close(*amplitude, NUMBERS)
    hsic = [cka.measure_cka(each, BATCH)["hsic"].to_numpy() for each in given]
    assert_close(*hsic, 10 * NUMBERS)


@every_mini
def test_predictions(split: Split, other: Side, name: str) -> None:
    labels = known_labels(split, range(IMAGES))
    ours, theirs = (
        predict(trained(name), batches(split, size), labels, device)
        for device, size in map(on, (ALONE, other))
    )
    assert_columns_close(theirs, ours, "confidence", "nll", "brier")
    for column in ("label", "prediction", "top5"):
        assert (theirs[column] != ours[column]).mean() <= ACCURACY


@pytest.mark.parametrize("name", ["vit", "pit", "swin", "alternet"])
def test_numbers_of_attention(split: Split, other: Side, name: str) -> None:
    selection = {"images": IMAGES, "seed": None, "shard_size": IMAGES}
    found, network, tables = mini_blocks(name), STUDY.network(name), []
    for device, size in map(on, (ALONE, other)):
        job = OnModel(name, trained(name), found.points, split, device, network, size, found.table)
        tables.append(attention.measure_attention(job, 0, selection))
    ours, theirs = tables
    assert_columns_close(theirs, ours, *VALUES)


@some_models
def test_lesions(split: Split, other: Side, name: str) -> None:
    labels, found = known_labels(split, range(IMAGES)), []
    points = mini_blocks(name).points
    joins = {points[index].name: join for index, join in joins_for_lesions(name, points).items()}
    for device, size in map(on, (ALONE, other)):
        found.append(
            correctness_of_lesions(trained(name), joins, batches(split, size), labels, device)
        )
    (clean, without), (other_clean, other_without) = found
    assert (clean != other_clean).mean() <= ACCURACY
    assert (without != other_without).mean() <= ACCURACY


DISTURBANCES = {
    "noise": noise_disturbance({"frequencies": [0.2, 0.6], "width": 0.1, "eps": 2.0, "seeds": 1}),
    "patches": patch_disturbance(
        list_patch_changes(8, [0.3], [4], 32), {"draws": 1, "seed": 0}, torch.full((3, 1, 1), -2.0)
    ),
}


@some_models
@pytest.mark.parametrize("disturb", DISTURBANCES.values(), ids=DISTURBANCES)
def test_disturbed_images(split: Split, other: Side, disturb: Disturb, name: str) -> None:
    rows, found = list(range(IMAGES)), []
    labels = known_labels(split, rows)
    for device, size in map(on, (ALONE, other)):
        images = batches(split, size)
        found.append(shares_found(trained(name), images, rows, labels, disturb, device))
    (clean, shares), (other_clean, other_shares) = found
    assert (clean != other_clean).mean() <= ACCURACY
    assert np.abs(shares - other_shares).mean() <= ACCURACY


@some_models
def test_the_landscape(drawn: AugmentedImages, other: Side, name: str) -> None:
    points = [(0.0, 0.0), (0.3, -0.2)]
    ours, theirs = (
        losses_at(
            OnLoss(trained(name), drawn, device, say=lambda text: None),
            points,
            LandscapeSettings(batch_size=size, precision="float32"),
            weight_decay=0.05,
        )
        for device, size in map(on, (ALONE, other))
    )
    assert_columns_close(theirs, ours, "nll", "loss", "loss_squared", "l2", "l2_squared", "ece")
    assert np.abs(theirs["accuracy"] - ours["accuracy"]).max() <= ACCURACY


@some_models
def test_eigenvalues_and_density_of_the_hessian(
    drawn: AugmentedImages, other: Side, name: str
) -> None:
    def losses(side: Side) -> OnLoss:
        device, _ = on(side)
        return OnLoss(trained(name), drawn, device, say=lambda text: None)

    options: dict[str, Any] = {"top": 3, "tolerance": EIGENVALUES / 10, "iterations": 60}
    ours, theirs = (
        measure_hessian(losses(side), [(BATCH, 0)], BATCH, 0.05, **options)
        for side in (ALONE, other)
    )
    assert theirs["converged"].all()
    assert_close(theirs["eigenvalue"].to_numpy(), ours["eigenvalue"].to_numpy(), EIGENVALUES)
    ours, theirs = (
        measure_hessian_density(losses(side), [(BATCH, 0)], BATCH, 0.05, probes=1, steps=8)
        for side in (ALONE, other)
    )
    # Nodes of small weight are sensitive to rounding; the moments that they stand for are not.
    for power in (1, 2, 3):
        moments = [float((d["weight"] * d["node"] ** power).sum()) for d in (theirs, ours)]
        assert moments[0] == pytest.approx(moments[1], rel=EIGENVALUES)


@some_models
def test_the_training_loss(drawn: AugmentedImages, other: Side, name: str) -> None:
    ours, theirs = (
        fit_losses(trained(name), drawn.batches(size), device)
        for device, size in map(on, (ALONE, other))
    )
    assert_close(theirs, ours, NUMBERS)


@some_models
def test_a_step_of_training(drawn: AugmentedImages, other: Side, name: str) -> None:
    def step(side: Side, dtype: torch.dtype) -> tuple[float, Array]:
        device, _ = on(side)
        model = trained(name).train().to(device, dtype)
        images, targets = (tensor.to(device, dtype) for tensor in drawn.rows(0, BATCH))
        with plain_attention(model):
            loss = nn.functional.cross_entropy(model(images), targets)
            loss.backward()
        gradient = torch.cat([p.grad.reshape(-1) for p in model.parameters() if p.grad is not None])
        return loss.item(), gradient.cpu().numpy()

    # Batches decide the gradient: on the CPU it is compared with that of double precision.
    exact = other[0] == "cpu"
    expected_loss, expected = step(ALONE, torch.float64 if exact else torch.float32)
    loss, found = step(other, torch.float32)
    assert loss == pytest.approx(expected_loss, rel=NUMBERS)
    assert_close(found, expected, GRADIENT)


def test_a_cuda_device_computes_in_full_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    backends = torch.backends
    operations = (backends.cuda.matmul, backends.cudnn.conv, backends.cudnn.rnn)
    before = [operation.fp32_precision for operation in operations]
    flags = backends.cudnn.benchmark, backends.cudnn.deterministic
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    try:
        assert pick_device("auto").type == "cuda"
        assert [operation.fp32_precision for operation in operations] == ["ieee"] * 3
        assert (backends.cudnn.benchmark, backends.cudnn.deterministic) == (False, True)
    finally:
        for operation, precision in zip(operations, before, strict=True):
            operation.fp32_precision = precision
        backends.cudnn.benchmark, backends.cudnn.deterministic = flags
