"""Compute how much each position of a selective scan adds to each later one, as a network runs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from vitscope.errors import VitscopeError
from vitscope.measures.attention_tokens import join_attention_windows
from vitscope.networks.finding.operations import another_path
from vitscope_scans.finding import Call, Scan, calling

# Rows of alpha that are computed at once, and about how many bytes they may take.
ROWS = 16
BYTES_AT_ONCE = 16 << 20


def alpha_by_rows(call: Call, image: int, channels: Tensor) -> Iterator[tuple[slice, Tensor]]:
    """Yield `ROWS` rows of alpha of an image at a time: (channels, rows, positions up to them).

    alpha[i, j] = C[i] . exp(A (delta[j + 1] + ... + delta[i])) . delta[j] B[j], for each channel.
    """
    delta, A = call["delta"][image, channels], call["A"][channels][..., None]
    if A.is_complex():
        raise VitscopeError("the network scans with complex numbers: such scans are not read.")
    kind = torch.promote_types(delta.dtype, torch.float32)
    delta, A = delta.to(kind), A.to(kind)
    if call.get("delta_bias") is not None:
        delta = delta + call["delta_bias"][channels, None]
    delta = softplus(delta) if call.get("delta_softplus") else delta

    def of_channels(given: Tensor) -> Tensor:
        if given.ndim == 2:
            return given[channels, :, None].expand(-1, -1, delta.shape[1]).to(kind)
        groups = given[image] if given.ndim == 4 else given[image, None]
        return groups[channels * len(groups) // call["delta"].shape[1]].to(kind)

    added, C = delta[:, None] * of_channels(call["B"]), of_channels(call["C"])
    # What each position before these rows has left in the state: (channels, state, positions).
    state = added[..., :0]
    for start in range(0, delta.shape[1], ROWS):
        rows = slice(start, min(start + ROWS, delta.shape[1]))
        passed = delta[:, None, rows].cumsum(-1)
        apart = (passed[..., :, None] - passed[..., None, :]).tril()
        within = torch.exp(A[..., None] * apart) * added[..., None, rows]
        decay = torch.exp(A * passed)
        before = (C[..., rows] * decay).transpose(1, 2) @ state
        here = (C[..., rows, None] * within).sum(1).tril()
        yield rows, torch.cat([before, here], -1)
        state = torch.cat([state * decay[..., -1:], within[..., -1, :]], -1)


def mean_sizes(call: Call, image: int, scan: Scan) -> Tensor:
    """Return the mean, over channels, of the absolute value of alpha between tokens."""
    length, state = call["delta"].shape[2], call["A"].shape[1]
    if length != scan.tokens.numbers.size:
        raise another_path("scanned another number of positions")
    sizes = torch.zeros(length, length, dtype=torch.promote_types(call["delta"].dtype, torch.float))
    sizes, channels = (each.to(call["delta"].device) for each in (sizes, scan.channels))
    at_once = max(1, BYTES_AT_ONCE // (4 * (length * (state + ROWS) + state * ROWS**2)))
    for some in channels.split(at_once):  # type: ignore[no-untyped-call]
        for rows, alpha in alpha_by_rows(call, image, some):
            sizes[rows, : rows.stop] += alpha.abs().sum(0)
    return join_attention_windows(sizes[None] / len(channels), scan.tokens, scan.tokens).cpu()


@contextmanager
def scanning(
    network: nn.Module,
    blocks: Mapping[int, Sequence[Scan]],
    sink: Callable[[int, int, Tensor], None],
) -> Iterator[None]:
    """Call `sink(index, image, weights)` for each of the `blocks` and image of a pass.

    The weights between the tokens of a block, (queries, keys), are the sum of those of its scans.
    """
    calls: list[Call] = []
    last = {scans[-1].call: (index, scans) for index, scans in blocks.items()}

    def read(call: Call) -> None:
        calls.append(call)
        index, scans = last.get(len(calls) - 1, (-1, ()))
        for image in range(len(call["u"]) if scans else 0):
            sizes = (mean_sizes(calls[scan.call], image, scan) for scan in scans)
            sink(index, image, sum(sizes, torch.zeros(())))
        for scan in scans:
            calls[scan.call] = {}

    def end(*_: object) -> None:
        if len(calls) != max(last) + 1:
            raise another_path(f"scanned {len(calls)} times, and not {max(last) + 1} times")
        calls.clear()

    hook = network.register_forward_hook(end)
    try:
        with calling(read):
            yield
    finally:
        hook.remove()
