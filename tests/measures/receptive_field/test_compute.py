"""Effective receptive fields: against closed forms, differences, and autograd of whole passes."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import vitscope
from tests.helpers.networks import mini
from tests.helpers.refusals import refusal
from tests.scopes.networks import Convolutions, network, pixels
from vitscope.errors import VitscopeError
from vitscope.measures.receptive_field.compute import (
    Field,
    FieldSquares,
    choose_receptive_field_points,
    pixel_contributions,
)
from vitscope.measures.receptive_field.measure import SHARES
from vitscope.networks.finding.capture import capturing
from vitscope.networks.finding.cut_points import CutPoint, Layout, OperationId

NCHW = Layout("nchw")


def point(module: str, stage: int = 1) -> CutPoint:
    return CutPoint(module, "conv", stage, module, "output", NCHW)


def convolutions(*kernels: Tensor, stride: int = 1) -> nn.Sequential:
    """A stack of convolutions without padding of values: with these kernels, (out, in, k, k)."""
    layers = []
    for kernel in kernels:
        wide, narrow, size, _ = kernel.shape
        layer = nn.Conv2d(narrow, wide, size, stride, padding=size // 2, bias=True)
        layer.weight.data = kernel
        layers.append(layer)
    return nn.Sequential(*layers)


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("size", [1, 5])
def test_of_one_convolution_it_is_the_kernel(size: int) -> None:
    kernel = drawn(4, 3, size, size)
    model, images = convolutions(kernel), drawn(2, 3, 16, 16, seed=1)
    (found,) = pixel_contributions(model, [point("0")], images)
    # The center is row and column 8: the kernel lies around it, in every image.
    expected = torch.zeros(2, 16, 16)
    around = slice(8 - size // 2, 9 + size // 2)
    expected[:, around, around] = kernel.sum(0).abs().sum(0)
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)
    assert int((found[0] > 0).sum()) == size**2


def test_of_linear_layers_it_is_the_product_of_their_kernels() -> None:
    first, second, third = drawn(4, 3, 3, 3), drawn(5, 4, 5, 5, seed=1), drawn(2, 5, 3, 3, seed=2)
    model, images = convolutions(first, second, third), drawn(1, 3, 20, 20, seed=3)
    points = [point(name) for name in "012"]
    found = pixel_contributions(model, points, images)
    # A convolution of correlations is a correlation with the convolved kernels: in numbers, what a
    # network of the kernels themselves makes of them, from the last to the first.
    kernel = third.sum(0, keepdim=True)
    for layer, size in ((second, 7), (first, 9)):
        kernel = nn.functional.conv_transpose2d(kernel, layer)
        assert kernel.shape[2:] == (size, size)
    expected = torch.zeros(20, 20)
    expected[6:15, 6:15] = kernel[0].abs().sum(0)
    torch.testing.assert_close(found[2][0], expected, rtol=1e-5, atol=1e-4)


def test_it_is_the_derivative_of_what_the_network_computes() -> None:
    """By differences in float64, through layers that are not linear."""
    model = nn.Sequential(nn.Conv2d(3, 4, 3, 2, 1), nn.GELU(), nn.Conv2d(4, 6, 3, 2, 1)).double()
    images, step = drawn(2, 3, 8, 8).double(), 1e-5
    (found,) = pixel_contributions(model, [point("2")], images)
    with torch.no_grad():
        plain = torch.zeros(2, 3, 8, 8, dtype=torch.float64)
        for index in np.ndindex(3, 8, 8):
            moved = torch.zeros_like(images)
            moved[:, *index] = step
            center = [model(images + sign * moved)[:, :, 1, 1].sum(1) for sign in (1, -1)]
            plain[:, *index] = (center[0] - center[1]) / (2 * step)
    torch.testing.assert_close(found, plain.abs().sum(1), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", ["resnet", "vit", "swin"])
def test_of_every_family_one_pass_gives_what_passes_of_each_image_give(name: str) -> None:
    model, points = mini(name)
    for parameter in model.requires_grad_(False).parameters():
        if parameter.ndim == 1:
            # Normalized with weights that are all alike, values add up to a constant.
            parameter.copy_(1 + 0.5 * drawn(*parameter.shape))
    some = [points[i] for i in (0, len(points) // 2, len(points) - 1)]
    images = drawn(2, 3, 32, 32)
    for at, found in zip(some, pixel_contributions(model, some, images), strict=True):
        for image, field in zip(images, found, strict=True):
            expected = plainly(model, at, image[None])
            torch.testing.assert_close(field, expected, rtol=1e-4, atol=1e-5 * expected.max())
            assert field.sum() > 0


def plainly(model: nn.Module, at: CutPoint, images: Tensor) -> Tensor:
    """The same of one image, by a whole pass and a whole pass back."""
    taken, maps = images.clone().requires_grad_(), []
    with capturing(model, [at], lambda _, latent: maps.append(latent)):
        model(taken)
    (latent,) = maps
    latent[0, :, latent.shape[2] // 2, latent.shape[3] // 2].sum().backward()
    return taken.grad[0].abs().sum(0)


class Sums(nn.Module):
    """Adds two branches of the images in its own forward pass, where no module ends."""

    def __init__(self, change: bool) -> None:
        super().__init__()
        self.one, self.other = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(3, 4, 5, padding=2)
        self.change = change

    def forward(self, images: Tensor) -> Tensor:
        maps = self.one(images) + self.other(images)
        if self.change:
            maps.mul_(2)
        return maps.mean((2, 3))


def of_operation(size: int) -> CutPoint:
    operation = OperationId("", ("add", 4, 4 * size * size), 0)
    return replace(point("sum"), module=None, operation=operation)


def test_a_point_at_an_operation_has_a_gradient() -> None:
    torch.manual_seed(0)
    model, images = Sums(change=False), drawn(2, 3, 12, 12)
    (found,) = pixel_contributions(model, [of_operation(12)], images)
    kernel = model.other.weight.detach().clone()
    kernel[:, :, 1:4, 1:4] += model.one.weight.detach()
    expected = torch.zeros(12, 12)
    expected[4:9, 4:9] = kernel.sum(0).abs().sum(0)
    torch.testing.assert_close(found[0], expected, rtol=1e-5, atol=1e-6)


def test_what_is_changed_in_place_behind_an_operation_is_refused() -> None:
    with pytest.raises(VitscopeError, match="changes its values at the cut point 'sum' in place"):
        pixel_contributions(Sums(change=True), [of_operation(12)], drawn(2, 3, 12, 12))


def test_values_without_a_gradient_are_refused() -> None:
    class Detached(nn.Conv2d):
        def forward(self, images: Tensor) -> Tensor:
            return super().forward(images).detach()

    model = nn.Sequential(Detached(3, 4, 3))
    with pytest.raises(VitscopeError, match="the cut point '0' without gradients"):
        pixel_contributions(model, [point("0")], drawn(1, 3, 8, 8))


def test_nothing_is_left_behind_by_a_pass_that_ends_early() -> None:
    model = convolutions(drawn(4, 3, 3, 3), drawn(4, 4, 3, 3))
    ran: list[str] = []
    model[1].register_forward_hook(lambda *_: ran.append("behind"))
    before = [len(module._forward_hooks) for module in model.modules()]
    pixel_contributions(model, [point("0")], drawn(1, 3, 8, 8))
    assert not ran
    assert [len(module._forward_hooks) for module in model.modules()] == before
    assert all(not module._forward_pre_hooks for module in model.modules())


def test_squares_by_hand() -> None:
    maps = np.zeros((6, 6))
    maps[3, 3] = 5
    maps[2:5, 2:5] += 0.25
    maps[0, 0] = 2.75
    squares = FieldSquares(6, 6)
    rings = squares.rings(maps[None])
    # Of 10: in the pixel 5.25, in the ring around it 2, and in the last 2.75, in the corner.
    assert rings.tolist() == [[5.25, 2, 0, 2.75]]
    found = {share: squares.holding(rings[0], share) for share in (0.5, 0.525, 0.53, 0.725, 0.99)}
    sides = {share: int(side) for share, (side, _) in found.items()}
    assert sides == {0.5: 1, 0.525: 1, 0.53: 3, 0.725: 3, 0.99: 7}
    areas = {share: float(area) for share, (_, area) in found.items()}
    assert areas == pytest.approx({0.5: 1 / 36, 0.525: 1 / 36, 0.53: 0.25, 0.725: 0.25, 0.99: 1})


def published_square(data: np.ndarray, share: float) -> tuple[int, float] | None:
    """Side and area of the smallest odd square, from 3 pixels, that holds more.

    What of it lies beyond the image does not count.
    """
    for reach in range(1, max(data.shape)):
        rows, columns = (slice(max(0, n // 2 - reach), n // 2 + 1 + reach) for n in data.shape)
        if data[rows, columns].sum() / data.sum() > share:
            return 2 * reach + 1, data[rows, columns].size / data.size
    return None


@pytest.mark.parametrize("size", [(24, 24), (25, 25), (24, 36), (33, 10)])
def test_squares_are_those_that_are_published(size: tuple[int, int]) -> None:
    away = np.hypot(*(each - n // 2 for each, n in zip(np.indices(size), size, strict=True)))
    data = np.exp(-((away / 4) ** 2)) * np.random.default_rng(0).uniform(0.5, 1, size)
    squares = FieldSquares(*size)
    for percent in SHARES:
        side, area = squares.holding(squares.rings(data[None])[0], percent / 100)
        assert (int(side), float(area)) == pytest.approx(published_square(data, percent / 100))


def test_where_nothing_contributes_there_is_no_square() -> None:
    side, area = FieldSquares(4, 4).holding(np.zeros(3), 0.5)
    assert np.isnan(side)
    assert np.isnan(area)


def stages(*of: int) -> list[CutPoint]:
    return [point(f"block.{index}", stage) for index, stage in enumerate(of)]


def test_the_last_of_each_stage_is_chosen() -> None:
    assert choose_receptive_field_points("m", stages(0, 1, 1, 2, 2, 2, 3), []) == [0, 2, 5, 6]
    # In a network of one stage, five from the first to the last.
    assert choose_receptive_field_points("m", stages(0, *[1] * 24), []) == [0, 6, 12, 18, 24]
    assert choose_receptive_field_points("m", stages(0, 1, 1), []) == [0, 1, 2]
    assert choose_receptive_field_points("m", stages(0), []) == [0]


def test_names_and_patterns() -> None:
    points = stages(0, 1, 1, 2, 2, 2, 3)
    assert choose_receptive_field_points("m", points, ["block.5", "block.1"]) == [1, 5]
    assert choose_receptive_field_points("m", points, ["block.[34]", "block.0"]) == [0, 3, 4]
    # Of a pattern that fits nothing, another is left.
    assert choose_receptive_field_points("m", points, ["other.*", "block.?"]) == list(range(7))
    for wanted, said in ((["blok.2"], "has no cut point 'blok.2'. Did you mean 'block.2'?"),
                         (["block.2", "stem"], "has no cut point 'stem'."),
                         (["other.*"], "none of 'other.*' fits a cut point")):  # fmt: skip
        sentence = refusal(choose_receptive_field_points, "m", points, wanted)
        assert said in sentence
        assert sentence.startswith("models.m: analysis.receptive_field.cut_points: ")


def test_the_table_of_a_network() -> None:
    settings = {"receptive_field": {"images": 5, "batch_size": 2}}
    scope = vitscope.look(network(Convolutions), pixels(), mean=0.5, std=0.25, analysis=settings)
    table = scope.receptive_field
    assert table["name"].tolist() == ["stem", "branches.0", "branches.1"]
    assert table["images"].tolist() == [5] * 3
    assert table[["row", "column"]].to_numpy().tolist() == [[8, 8]] * 3
    fields = [np.reshape(each, (16, 16)) for each in table["contributions"]]
    for reach, field in enumerate(fields, start=1):
        # Each layer of 3x3 reaches a pixel farther, and no more.
        seen = np.argwhere(field > 0)
        assert (seen.min(0).tolist(), seen.max(0).tolist()) == ([8 - reach] * 2, [8 + reach] * 2)
    assert table["side_99"].tolist() == sorted(table["side_99"])
    for row in table.to_dict("records"):
        areas = [row[f"area_{percent}"] for percent in SHARES]
        assert all(one <= other for one, other in pairwise(areas))
        for percent, area in zip(SHARES, areas, strict=True):
            assert row[f"side_{percent}"] ** 2 == 256 * area
            assert row[f"low_{percent}"] <= area <= row[f"high_{percent}"]
        assert row["log_area_99"] >= row["area_50"]
    settings = {"receptive_field": {"images": 1, "cut_points": ["stem"]}}
    scope = vitscope.look(network(Convolutions), pixels(), mean=0.5, std=0.25, analysis=settings)
    # A single image has no interval.
    columns = ["low_50", "high_50", "area_50_resampled"]
    whole = scope.table("receptive_field", resamples=True)
    assert whole[columns].isna().all(axis=None)


def test_resamples_are_areas_of_the_mean_of_images_drawn_again() -> None:
    away = np.hypot(*(np.indices((12, 12)) - 6))
    images = torch.stack([torch.from_numpy(np.exp(-away / reach)) for reach in (1, 2, 3, 5, 9)])
    block = {"name": "stem", "height": 12, "width": 12}
    field = Field(point("0"), block, (12, 12))
    field.add(images[:3])
    field.add(images[3:])
    row = field.row(resamples=30, seed=7)
    weights = np.random.default_rng(7).multinomial(5, [0.2] * 5, size=30)
    squares, areas = FieldSquares(12, 12), []
    for times in weights:
        again = np.repeat(images.numpy(), times, axis=0).mean(axis=0)
        areas.append(float(squares.holding(squares.rings(again[None])[0], 0.5)[1]))
    assert len({*areas}) == 3
    np.testing.assert_allclose(row["area_50_resampled"], areas, rtol=1e-6)
