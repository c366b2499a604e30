from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import (
    adaptive_avg_pool2d,
    adaptive_max_pool2d,
    avg_pool2d,
    interpolate,
    max_pool2d,
    pad,
)

from tests.helpers.kinds import KINDS, build
from tests.helpers.networks import described
from vitscope.networks.finding.blocks import list_blocks
from vitscope.networks.finding.capture import capturing
from vitscope.networks.finding.dataflow import Value
from vitscope.networks.finding.dataflow_recorder import record_dataflow
from vitscope.networks.finding.positions import PositionTracer
from vitscope.networks.finding.recorded_pass import RecordedMaps

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
    flow = record_dataflow(Made(make), torch.zeros(2, 3, SIZE, SIZE))
    made = next(index for index, each in enumerate(flow.operations) if each.name == "cos")
    positions = PositionTracer(flow).positions(Value(made))
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
        # As VGG of small images.
        (lambda x: adaptive_avg_pool2d(convolved(16, 16)(x), 8), 8, 2, 4),
        # Where nobody can tell, a new map fills the image.
        (lambda x: convolved(3, 2)(pad(x, (0, 1, 0, 1))), 16, 1, 2),
    ],
)
def test_maps(make: Callable[[Tensor], Tensor], count: int, first: float, apart: float) -> None:
    expected = [first + apart * number for number in range(count)]
    assert rows_of(make).tolist() == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("pool", [adaptive_avg_pool2d, adaptive_max_pool2d])
def test_pooling_that_does_not_divide_a_map(pool: Callable[[Tensor, int], Tensor]) -> None:
    """As of the agents of agent attention: 8 rows are pooled in threes, and two of them twice."""
    made = rows_of(lambda x: pool(convolved(4, 4)(x), 3))
    assert made.tolist() == pytest.approx([4 * 1.5, 4 * 4, 4 * 6.5], abs=1e-4)
    made = rows_of(lambda x: convolved(1, 1)(pool(convolved(8, 8)(x), 3)))
    assert made.tolist() == pytest.approx([8 * 1, 8 * 2, 8 * 3], abs=1e-4)


def test_a_map_of_heads_that_are_counted_as_images() -> None:
    def make(images: Tensor) -> Tensor:
        heads = convolved(2, 1)(images).unflatten(1, (3, 1)).flatten(0, 1)
        return nn.Conv2d(1, 1, 3, 2, 1)(heads)

    torch.testing.assert_close(rows_of(make), 1 + 2.0 * torch.arange(16), rtol=0, atol=1e-4)


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


Arrange = Callable[[Tensor], Tensor]
PERMUTED = torch.randperm(24, generator=torch.Generator().manual_seed(0))


def tokens(x: Tensor) -> Tensor:
    return x.flatten(2).transpose(1, 2)


def with_prefix(count: int) -> Arrange:
    return lambda x: torch.cat([torch.ones(len(x), count, x.shape[1]), tokens(x)], dim=1)


def windows(x: Tensor) -> Tensor:
    """Cut a map into windows of 2x3, as (images and windows, rows, columns, channels)."""
    n, c, h, w = x.shape
    cut = x.permute(0, 2, 3, 1).view(n, h // 2, 2, w // 3, 3, c)
    return cut.permute(0, 1, 3, 2, 4, 5).reshape(-1, 2, 3, c)


ARRANGED: dict[str, Arrange] = {
    "as it is": lambda x: x.clone(),
    "channels last": lambda x: x.permute(0, 2, 3, 1).contiguous(),
    "tokens": tokens,
    "tokens, channels first": lambda x: x.flatten(2),
    "one token before": with_prefix(1),
    "two tokens before": with_prefix(2),
    "a token behind": lambda x: torch.cat([tokens(x), torch.ones(len(x), 1, x.shape[1])], dim=1),
    "sequence first": lambda x: x.flatten(2).permute(2, 0, 1),
    "sequence first, a token before": lambda x: with_prefix(1)(x).transpose(0, 1),
    "permuted": lambda x: windows(x).reshape(len(x), 24, -1),
    "windows": windows,
    "windows of tokens": lambda x: windows(x).flatten(1, 2),
    "rolled": lambda x: x.permute(0, 2, 3, 1).roll((1, -2), (1, 2)).flatten(1, 2),
    "taken in another order": lambda x: tokens(x)[:, PERMUTED],
    "normalized": lambda x: with_prefix(1)(x)[:, 1:].contiguous(),
}


class Arranging(nn.Module):
    """A convolution, and what it gives in another order."""

    def __init__(self, arrange: Arrange) -> None:
        super().__init__()
        self.conv, self.arrange = nn.Conv2d(3, 5, 2, 2), arrange

    def forward(self, images: Tensor) -> Tensor:
        return self.arrange(self.conv(images))


@pytest.mark.parametrize("name", ARRANGED)
def test_a_map_is_found_again(name: str) -> None:
    model, images = Arranging(ARRANGED[name]), torch.randn(3, 3, 8, 12)
    flow = record_dataflow(model, images)
    layout = RecordedMaps(flow).layout(flow.result.operation)
    # Of as many images as there were, and of others.
    for each in (images, torch.randn(1, 3, 8, 12), torch.randn(7, 3, 8, 12)):
        given = model(each)
        assert torch.equal(layout.to_nchw(given), model.conv(each))
        # What lies row by row is not copied.
        if name in ("as it is", "channels last", "tokens", "one token before"):
            storage = layout.to_nchw(given).untyped_storage()
            assert storage.data_ptr() == given.untyped_storage().data_ptr()


def attended(x: Tensor) -> Tensor:
    """Attend among tokens: each of the result is where its query was."""
    one = with_prefix(1)(x)
    return (one @ one.transpose(1, 2)).softmax(-1) @ one


@pytest.mark.parametrize(
    "change",
    [
        attended,
        lambda x: nn.functional.layer_norm(with_prefix(1)(x), (5,)),
        lambda x: with_prefix(1)(x).relu() + with_prefix(1)(x),
        lambda x: with_prefix(1)(x) @ torch.ones(5, 5),
    ],
)
def test_what_computes_from_channels_leaves_places_as_they_are(change: Arrange) -> None:
    flow = record_dataflow(Arranging(change), torch.randn(3, 3, 8, 12))
    layout = RecordedMaps(flow).layout(flow.result.operation)
    assert (layout.order, layout.prefix, layout.grid) == ("nlc", 1, (4, 6))


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.mean((2, 3)),
        lambda x: tokens(x).mean(1),
        lambda x: with_prefix(1)(x)[:, 0],
        lambda x: x.flatten(1),
        lambda x: tokens(x)[:, :23],
    ],
)
def test_what_is_no_map(change: Arrange) -> None:
    flow = record_dataflow(Arranging(change), torch.randn(3, 3, 8, 12))
    assert RecordedMaps(flow).layout(flow.result.operation) is None


def test_tokens_of_hiera_lie_as_its_own_code_says() -> None:
    model = build("hiera")
    points = list_blocks("hiera", model, described(64)).points
    images, found, expected = torch.randn(2, 3, 64, 64), {}, {}

    def keep(index: int, latent: Tensor) -> None:
        found[points[index].name] = latent.clone()

    def reroll(number: int, tensor: Tensor) -> None:
        expected[f"blocks.{number}.mlp"] = model.reroll(tensor, number).permute(0, 3, 1, 2)

    for number, block in enumerate(model.blocks):
        block.register_forward_hook(lambda _, args, out, number=number: reroll(number, out))
    with torch.no_grad(), capturing(model, points, keep):
        model(images)
    assert len(expected) == 6
    for name, latent in expected.items():
        assert torch.equal(found[name], latent), name
    assert KINDS["hiera"].image_size == 64


def in_four_orders(x: Tensor) -> Tensor:
    """Write the tokens by rows, by columns, and both backward, as the code of VMamba does."""
    count, channels, height, width = x.shape
    found = x.new_empty((count, 4, channels, height * width))
    found[:, 0] = x.flatten(2)
    found[:, 1] = x.transpose(2, 3).flatten(2)
    found[:, 2:4] = found[:, :2].flip(-1)
    return found.flatten(1, 2)


def written_twice(x: Tensor) -> Tensor:
    found = x.flatten(2).clone()
    turned = found.flip(-1)
    part = found[..., 3:9]
    part.copy_(turned[..., :6])
    found[:, 1:] = turned[:, 1:]
    return found


def written_by_columns(x: Tensor) -> Tensor:
    found = torch.zeros(len(x), x.shape[3], x.shape[1])
    for column in range(x.shape[3] - 1):
        found[:, column] = x[:, :, 2, column + 1]
    return found


def along_sequence(padding: int, **how: int) -> Arrange:
    """Convolve along the tokens, with a kernel that takes that of the same index alone."""

    def convolve(x: Tensor) -> Tensor:
        kernel = torch.zeros(3, 1, 4)
        kernel[..., padding] = 1
        return nn.functional.conv1d(x.flatten(2), kernel, padding=padding, groups=3, **how)

    return convolve


@pytest.mark.parametrize(
    "make",
    [
        in_four_orders,
        written_twice,
        written_by_columns,
        lambda x: along_sequence(3)(x)[..., : x[0, 0].numel()],
        lambda x: along_sequence(2)(x)[..., : x[0, 0].numel()],
        lambda x: along_sequence(3)(x.transpose(2, 3))[..., : x[0, 0].numel()],
    ],
)
def test_places_are_those_of_the_pixels_that_are_there(make: Arrange) -> None:
    """Pixels that hold their own place say where they went."""
    axes = [(torch.arange(n) + 0.5) / n for n in (4, 6)]
    flow = record_dataflow(Made(make), torch.zeros(2, 3, 4, 6))
    made = next(index for index, each in enumerate(flow.operations) if each.name == "cos")
    positions = PositionTracer(flow).positions(Value(made))
    for plane, found in zip(torch.meshgrid(*axes, indexing="ij"), positions[1:], strict=True):
        expected = make(plane.expand(2, 3, 4, 6))
        # What was zero before has no place.
        expected = expected.where(expected > 0, torch.nan)
        torch.testing.assert_close(found.expand(expected.shape), expected, equal_nan=True)


@pytest.mark.parametrize(
    "make",
    [
        along_sequence(0),
        along_sequence(3, stride=2),
        lambda x: nn.Conv1d(3, 3, 3, padding=3, dilation=2)(x.flatten(2)),
        # It mixes tokens, which it takes for channels.
        lambda x: nn.Conv1d(24, 24, 3, padding=1)(tokens(x)),
    ],
)
def test_a_convolution_along_a_sequence_that_does_not_keep_its_tokens(make: Arrange) -> None:
    flow = record_dataflow(Made(make), torch.zeros(2, 3, 4, 6))
    made = next(index for index, each in enumerate(flow.operations) if each.name == "cos")
    assert PositionTracer(flow).positions(Value(made)) is None
