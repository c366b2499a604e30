"""Where the positions of maps are, in pixels of an image: as far apart as strides say."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import (
    adaptive_avg_pool2d,
    avg_pool2d,
    interpolate,
    max_pool2d,
    pad,
)

from vitscope.networks.finding.dataflow import Value, record
from vitscope.networks.finding.positions import Tracer

SIZE = 32


class Made(nn.Module):
    """Makes something of an image, and a number for each image of that."""

    def __init__(self, make: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.make = make

    def forward(self, images: Tensor) -> Tensor:
        return self.make(images).cos().flatten(1).sum(1, keepdim=True)


def rows_of(make: Callable[[Tensor], Tensor]) -> Tensor | None:
    """Return the rows of what is made of images, in pixels."""
    rows = _rows_of(make)
    with torch.inference_mode():
        again = _rows_of(make)
    assert rows is again is None or torch.equal(rows, again)
    return rows


def _rows_of(make: Callable[[Tensor], Tensor]) -> Tensor | None:
    flow = record(Made(make), torch.zeros(2, 3, SIZE, SIZE))
    made = next(index for index, each in enumerate(flow.operations) if each.name == "cos")
    positions = Tracer(flow).positions(Value(made))
    if positions is None:
        return None
    assert torch.equal(positions.row.flatten(), positions.column.flatten())
    return SIZE * positions.row.flatten()


def convolved(size: int, stride: int, padding: int = 0, dilation: int = 1) -> nn.Conv2d:
    return nn.Conv2d(3, 3, size, stride, padding, dilation)


@pytest.mark.parametrize(
    ("make", "count", "first", "apart"),
    [
        (lambda x: x, 32, 0.5, 1),
        (convolved(4, 4), 8, 2, 4),
        # That of a network of patches which overlap: 31 positions between the pixels.
        (convolved(2, 1), 31, 1, 1),
        (lambda x: convolved(3, 2, 1)(convolved(2, 1)(x)), 16, 1, 2),
        (convolved(5, 5), 6, 3.5, 5),
        (convolved(3, 1, 0, 2), 28, 2.5, 1),
        (lambda x: max_pool2d(convolved(7, 2, 3)(x), 3, 2, 1), 8, 2, 4),
        (lambda x: avg_pool2d(convolved(2, 1)(x), 2), 15, 2, 2),
        (lambda x: nn.ConvTranspose2d(3, 3, 2, 2)(convolved(8, 8)(x)), 8, 2, 4),
        (lambda x: interpolate(convolved(2, 2)(x), scale_factor=2), 32, 0.5, 1),
        (lambda x: adaptive_avg_pool2d(x[:, :, 8:24, 8:24], 4), 4, 10, 4),
        # Where nobody can tell, a new map fills the image.
        (lambda x: convolved(3, 2)(pad(x, (0, 1, 0, 1))), 16, 1, 2),
    ],
)
def test_maps(make: Callable[[Tensor], Tensor], count: int, first: float, apart: float) -> None:
    rows = rows_of(make)
    assert rows is not None
    expected = [first + apart * number for number in range(count)]
    assert rows.tolist() == pytest.approx(expected, abs=1e-4)


def test_a_map_of_heads_that_are_counted_as_images() -> None:
    def make(images: Tensor) -> Tensor:
        heads = convolved(2, 1)(images).unflatten(1, (3, 1)).flatten(0, 1)
        return nn.Conv2d(1, 1, 3, 2, 1)(heads)

    rows = rows_of(make)
    assert rows is not None
    torch.testing.assert_close(rows, 1 + 2.0 * torch.arange(16), rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x.sort(-1).values,
        lambda x: x.flatten(1).topk(7).values,
        # Windows that are counted as images and convolved.
        lambda x: convolved(3, 2)(x.unflatten(2, (4, 8)).transpose(1, 2).flatten(0, 1)),
    ],
)
def test_what_nobody_can_tell(make: Callable[[Tensor], Tensor]) -> None:
    assert rows_of(make) is None
