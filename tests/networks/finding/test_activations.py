"""Memory of feature maps, counted of networks that are simple enough to count by hand."""

import torch
from torch import nn

from vitscope.networks.finding.blocks import ActivationCounter


def counted(model: nn.Module, images: torch.Tensor) -> tuple[int, int]:
    """Return the bytes that a pass of a model makes, and the most in memory at once."""
    with torch.no_grad(), ActivationCounter() as counter:
        model.eval()(images)
    return counter.take()


def test_every_result_counts_and_two_are_in_memory_at_once() -> None:
    model = nn.Sequential(nn.Conv2d(3, 8, 1), nn.GELU(), nn.Conv2d(8, 2, 1))
    hidden, out = 4 * 8 * 16, 4 * 2 * 16
    assert counted(model, torch.zeros(1, 3, 4, 4)) == (2 * hidden + out, 2 * hidden)


def test_views_and_changes_in_place_take_no_memory() -> None:
    model = nn.Sequential(
        nn.Flatten(), nn.Linear(12, 5), nn.ReLU(inplace=True), nn.Unflatten(1, (5, 1))
    )
    assert counted(model, torch.zeros(2, 3, 2, 2)) == (4 * 2 * 5, 4 * 2 * 5)


class Residual(nn.Module):
    """A branch beside a stream that waits for it."""

    def __init__(self) -> None:
        super().__init__()
        self.branch = nn.Sequential(nn.ReLU(), nn.ReLU(), nn.ReLU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.branch(x)


def test_a_stream_that_waits_stays_in_memory() -> None:
    size = 4 * 10
    made, peak = counted(nn.Sequential(nn.ReLU(), Residual()), torch.zeros(10))
    assert (made, peak) == (5 * size, 3 * size)


def test_what_was_taken_is_not_counted_again() -> None:
    with ActivationCounter() as counter:
        kept = torch.zeros(10)
        assert counter.take() == (40, 40)
        assert counter.take() == (0, 40)
        del kept
        torch.zeros(5)
    assert counter.take() == (20, 40)
