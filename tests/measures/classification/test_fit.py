"""Error and training loss, against closed forms and another library."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.special import log_softmax
from scipy.stats import binomtest
from torch import Tensor, nn

from tests.helpers.augmented import augmented
from tests.helpers.splits import on_model, shapes
from vitscope.errors import VitscopeError
from vitscope.jobs.tables import find_table
from vitscope.measures.bootstrap import bootstrap_image_means, spread
from vitscope.measures.classification.fit import fit_losses, fit_table, measure_fit

CLASSES = 5


def drawn(images: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return images and targets that are mixed and smoothed."""
    generator = np.random.default_rng(seed)
    targets = generator.dirichlet(np.full(CLASSES, 0.5), images)
    return generator.normal(size=(images, 3, 4, 4)).astype(np.float32), targets.astype(np.float32)


def batches(pixels: np.ndarray, targets: np.ndarray, size: int) -> list[tuple[Tensor, Tensor]]:
    pairs = torch.from_numpy(pixels), torch.from_numpy(targets)
    return list(zip(*(tensor.split(size) for tensor in pairs), strict=True))


def linear(seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Flatten(), nn.Linear(48, CLASSES))


def test_the_loss_is_that_of_a_linear_model_by_hand() -> None:
    pixels, targets = drawn(23)
    model = linear()
    weight, bias = (parameter.detach().numpy().astype(float) for parameter in model.parameters())
    logits = pixels.reshape(23, -1).astype(float) @ weight.T + bias
    expected = -(targets * log_softmax(logits, axis=1)).sum(1)
    found = fit_losses(model, batches(pixels, targets, 7))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_batches_do_not_matter_and_the_model_is_in_evaluation_mode() -> None:
    pixels, targets = drawn(24)
    model = nn.Sequential(nn.BatchNorm2d(3), nn.Dropout(0.5), *linear()).train()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    found = [fit_losses(model, batches(pixels, targets, size)) for size in (24, 5)]
    np.testing.assert_allclose(*found, rtol=1e-6)
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, before[name])


@pytest.mark.parametrize("wrong", [0, 9])
def test_an_error_whose_resamples_are_all_equal_has_wilsons_interval(wrong: int) -> None:
    row = fit_table(predictions(wrong, 9), np.ones(3), 50, 0).iloc[0]
    wilson = binomtest(wrong, 9).proportion_ci(method="wilson")
    expected = (100 * wilson.low, 100 * wilson.high)
    assert (row["ci_low"], row["ci_high"]) == pytest.approx(expected)


def test_a_loss_that_is_not_finite_is_refused() -> None:
    pixels, targets = drawn(6)
    pixels[4] = np.inf
    with pytest.raises(VitscopeError, match="Sequential is not finite on 1 of 6 training images"):
        fit_losses(linear(), batches(pixels, targets, 3))


def test_no_images_are_refused() -> None:
    with pytest.raises(VitscopeError, match="no image to measure the loss on"):
        fit_losses(linear(), [])


def predictions(wrong: int, images: int) -> pd.DataFrame:
    return pd.DataFrame({"label": [1] * images, "prediction": [0] * wrong + [1] * (images - wrong)})


def test_the_table_has_the_error_and_the_loss(tmp_path: Path) -> None:
    losses = np.array([1.0, 2.0, 6.0])
    table = fit_table(predictions(37, 200), losses, resamples=500, seed=3)
    assert table["metric"].tolist() == ["error_percent", "nll_train"]
    assert table["images"].tolist() == [200, 3]
    assert table["value"].tolist() == [18.5, 3.0]
    error = table.iloc[0]
    wrong = np.repeat([100.0, 0.0], [37, 163])[:, None]
    low, high, _ = spread(wrong, 500, 3)
    assert [error["ci_low"], error["ci_high"]] == [*low, *high]
    for values, resampled in zip((wrong, losses[:, None]), table["value_resampled"], strict=True):
        means = bootstrap_image_means(values, 500, 3)[:400, 0]
        np.testing.assert_array_equal(resampled, means.astype(np.float32))
    assert table.iloc[1][["ci_low", "ci_high"]].isna().all()
    find_table("fit").write(table.assign(model="vit"), tmp_path / "fit.parquet")


def test_a_job_measures_augmented_images_beside_predictions(tmp_path: Path) -> None:
    alike = augmented(tmp_path / "drawn", *drawn(10))
    images = shapes(tmp_path / "split", 10)
    given = on_model(linear(), images, alike=alike, predictions=predictions(3, 20))
    losses = fit_losses(linear(), alike.batches(7))
    expected = fit_table(predictions(3, 20), losses, 100, 3).assign(model="net")
    pd.testing.assert_frame_equal(measure_fit(given, 100, 3), expected, check_exact=True)
