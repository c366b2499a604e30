"""Deletion and insertion: in closed form, pixel by pixel, and by another library's resizing."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn

from tests.helpers.splits import on_model, shapes
from tests.measures.class_maps.test_compute import TOKENS, Attends, at
from vitscope.data.split import OUTPUTS
from vitscope.measures.class_maps.compute import (
    Explainer,
    blur_image,
    change_pixels_by_class_map,
    faithfulness_curves,
    faithfulness_table,
    measure_faithfulness,
    order_pixels,
)

EXPLAINED = {"cut_point": None, "of_class": None}
CHANGED = {"steps": 4, "blur": 0.1, "seed": 0}
BOOTSTRAP = {"resamples": 50, "seed": 0}


def test_pixels_stand_in_the_order_of_the_resized_map() -> None:
    generator = np.random.default_rng(0)
    values = generator.random((3, 5), np.float32)
    resized = Image.fromarray(values).resize((20, 12), Image.Resampling.BILINEAR)
    found = order_pixels(torch.from_numpy(values), torch.zeros(1, 3, 12, 20), np.zeros(240))
    along = np.asarray(resized).ravel()[found]
    assert sorted(found) == [*range(240)]
    assert np.diff(along).max() < 1e-6


def test_equal_pixels_stand_in_the_order_that_is_given() -> None:
    values = torch.tensor([[0.0, 1.0], [0.0, 1.0]])
    found = order_pixels(values, torch.zeros(1, 3, 2, 2), np.array([0.9, 0.8, 0.1, 0.2]))
    assert found.tolist() == [3, 1, 2, 0]


@pytest.mark.parametrize("steps", [1, 4, 5])
def test_views_are_those_of_a_loop_over_pixels(steps: int) -> None:
    torch.manual_seed(0)
    before, after = torch.rand(2, 1, 3, 2, 3)
    order = np.array([4, 0, 5, 2, 1, 3])
    views = change_pixels_by_class_map(before, after, order, steps)
    assert views.shape == (steps + 1, 3, 2, 3)
    for step, view in enumerate(views):
        expected = before[0].clone()
        for pixel in order[: 6 * step // steps]:
            expected[:, pixel // 3, pixel % 3] = after[0, :, pixel // 3, pixel % 3]
        torch.testing.assert_close(view, expected, rtol=0, atol=0)


def test_the_blur_is_as_wide_as_it_says() -> None:
    image = torch.zeros(1, 1, 61, 81)
    image[..., 30, 40] = 1
    blurred = blur_image(image, 0.05)[0, 0].double().numpy()
    assert blurred.sum() == pytest.approx(1, rel=1e-6)
    variance = (blurred.sum(0) * (np.arange(81) - 40) ** 2).sum()
    # The width of a filter ends at four deviations.
    assert np.sqrt(variance) == pytest.approx(0.05 * 61, rel=5e-3)


class Sums(nn.Module):
    """Two classes: the weighted sum of the pixels is the logit of the first."""

    def __init__(self) -> None:
        super().__init__()
        self.weigh = nn.Conv2d(3, 1, 1, bias=False)
        nn.init.constant_(self.weigh.weight, 1e-3)

    def forward(self, images: Tensor) -> Tensor:
        summed = self.weigh(images).flatten(1).sum(1)
        return torch.stack([summed, torch.zeros_like(summed)], 1)


def test_the_class_of_a_linear_network_falls_by_what_is_deleted(images) -> None:
    """Grad-CAM is the weighted sum at every pixel, so that its order is that of the pixels."""
    given = on_model(Sums(), images, cut_points=[at("weigh")])
    pixels = torch.randn(1, 3, 8, 8, generator=torch.Generator().manual_seed(0)).abs()
    curves = faithfulness_curves(Explainer(given, of_class=0), 3, pixels, **CHANGED)
    assert {*curves} == {
        (method, change)
        for method in ("grad_cam", "layer_cam", "random")
        for change in ("deleted", "inserted")
    }
    sums = 1e-3 * pixels.double().sum(1).flatten().sort(descending=True).values.numpy()
    left = [sums[count:].sum() for count in (0, 16, 32, 48, 64)]
    np.testing.assert_allclose(curves["grad_cam", "deleted"], 1 / (1 + np.exp(np.negative(left))))
    # By a random order less is deleted, and both ends are the same.
    assert (curves["random", "deleted"][1:-1] > curves["grad_cam", "deleted"][1:-1]).all()
    np.testing.assert_allclose(curves["grad_cam", "inserted"][-1], 1 / (1 + np.exp(-left[0])))


def test_equal_maps_of_a_row_and_a_seed_have_equal_curves(images) -> None:
    given = on_model(Attends(), images, cut_points=[TOKENS])
    image = torch.randn(1, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    first, again, other, seeded = (
        faithfulness_curves(Explainer(given), row, image, **CHANGED | {"seed": seed})
        for row, seed in ((1, 0), (1, 0), (2, 0), (1, 1))
    )
    for key, curve in first.items():
        np.testing.assert_array_equal(curve, again[key])
    for different in (other, seeded):
        assert (first["random", "deleted"] != different["random", "deleted"]).any()


def test_areas_are_those_below_the_curves() -> None:
    curves = {("grad_cam", "deleted"): np.array([[1, 0.5, 0.2], [0.8, 0.8, 0]])}
    table = faithfulness_table("net", curves, BOOTSTRAP)
    assert table["share"].tolist() == [0, 0.5, 1]
    assert table["probability"].tolist() == pytest.approx([0.9, 0.65, 0.1])
    # Trapezoids of a width of a half.
    areas = [(0.75 + 0.35) / 2, (0.8 + 0.4) / 2]
    assert table["area"].unique().tolist() == pytest.approx([np.mean(areas)])
    ends = table[["area_low", "area_high"]].iloc[0].tolist()
    assert ends == pytest.approx(sorted(areas))
    # Of either image once or twice, in each resample as it was drawn.
    weights = np.random.default_rng(BOOTSTRAP["seed"]).multinomial(2, [0.5, 0.5], size=50)
    for kept in table["area_resampled"]:
        np.testing.assert_allclose(kept, weights @ areas / 2, rtol=1e-6)


def test_the_table(images) -> None:
    model = Attends()
    given = on_model(model, images, cut_points=[TOKENS])
    table = measure_faithfulness(
        given, EXPLAINED, {"shown": 6, "images": 10, "seed": 4}, CHANGED, BOOTSTRAP
    )
    methods = ["grad_cam", "layer_cam", "gradient_rollout", "rollout", "random"]
    assert table["method"].drop_duplicates().tolist() == methods
    assert (
        table.groupby(["method", "change"])["share"]
        .apply(list)
        .map(lambda shares: shares == [0, 0.25, 0.5, 0.75, 1])
        .all()
    )
    # As the image is, all methods agree; with all deleted, too.
    for change, share in (("deleted", 0), ("deleted", 1), ("inserted", 0), ("inserted", 1)):
        rows = table[(table["change"] == change) & (table["share"] == share)]
        assert np.ptp(rows["probability"]) < 1e-6
    whole = table[(table["change"] == "inserted") & (table["share"] == 1)]["probability"].iloc[0]
    clean = table[(table["change"] == "deleted") & (table["share"] == 0)]["probability"].iloc[0]
    assert whole == pytest.approx(clean, rel=1e-6)
    assert (table["ci_low"] <= table["probability"]).all()


def test_of_categories_it_is_their_probability_that_is_followed(tmp_path: Path) -> None:
    split = shapes(tmp_path / "test.safetensors", 2)
    split.metadata[OUTPUTS] = json.dumps([[0, 1, 2], [5, 7]])
    given = on_model(Attends(), split, cut_points=[TOKENS])
    image = torch.randn(1, 3, 32, 32, generator=torch.Generator().manual_seed(1))
    logits, number, _ = Explainer(given).explain(image)
    shares = logits[0].double().softmax(0)
    means = torch.stack([shares[[0, 1, 2]].mean(), shares[[5, 7]].mean()])
    assert number == int(means.argmax())
    curves = faithfulness_curves(Explainer(given), 0, image, **CHANGED)
    expected = float(means[number] / means.sum())
    assert curves["rollout", "deleted"][0] == pytest.approx(expected, rel=1e-5)
