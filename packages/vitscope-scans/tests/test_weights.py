"""Alpha is the Jacobian of a scan; what is read of a network is what it computes."""

from typing import Any

import pytest
import torch
import vim
import vmamba
from given import SIDE, as_given, drawn_call, weights_by_hand, weights_by_loops
from reference import selective_scan_ref
from torch import Tensor, nn
from vitscope_scans import weights as module
from vitscope_scans.finding import Scan, calling, scans_of
from vitscope_scans.weights import alpha_by_rows, mean_sizes, scanning

from vitscope.errors import VitscopeError
from vitscope.measures.attention_tokens import attention_tokens

BIAS = torch.linspace(-1, 0.5, 6, dtype=torch.float64)


def alpha_of(call: dict[str, Any], image: int, channels: int) -> Tensor:
    length = call["u"].shape[2]
    found = torch.zeros(channels, length, length, dtype=torch.float64)
    for rows, alpha in alpha_by_rows(call, image, torch.arange(channels)):
        found[:, rows, : rows.stop] = alpha
    return found


@pytest.mark.parametrize("groups", [None, 0, 1, 3])
@pytest.mark.parametrize("length", [1, 20])
@pytest.mark.parametrize("how", [{}, {"delta_softplus": True, "delta_bias": BIAS}])
def test_alpha_is_the_jacobian_of_the_scan(
    groups: int | None, length: int, how: dict[str, Any]
) -> None:
    """Without the skip, which is added to its diagonal, and as far as positions were passed."""
    call = drawn_call(6, length, 4, groups, **how)
    rest = {name: value for name, value in call.items() if name != "u"}

    def scan(u: Tensor) -> Tensor:
        return selective_scan_ref(torch.stack([u, call["u"][1]]), **rest)[0]

    jacobian = torch.autograd.functional.jacobian(scan, call["u"][0])
    skip = torch.diag_embed(call["D"][:, None].expand(-1, length))
    for channel in range(6):
        own = jacobian[channel, :, channel] - skip[channel]
        torch.testing.assert_close(alpha_of(call, 0, 6)[channel], own, rtol=1e-10, atol=1e-10)
    assert jacobian[0, :, 1].abs().max() == 0


def test_steps_that_are_long_or_negative_are_as_the_scan_has_them() -> None:
    call = drawn_call(2, 40, 3, 1)
    call["delta"] = torch.where(torch.arange(40) % 7 == 0, 900.0, call["delta"])
    call["delta"][..., 20:] = -0.05 * call["delta"][..., 20:].clamp(max=1)

    def scan(u: Tensor) -> Tensor:
        rest = {name: call[name] for name in ("delta", "A", "B", "C")}
        return selective_scan_ref(torch.stack([u, call["u"][1]]), **rest)[0]

    jacobian = torch.autograd.functional.jacobian(scan, call["u"][0])
    own = torch.stack([jacobian[n, :, n] for n in range(2)])
    torch.testing.assert_close(alpha_of(call, 0, 2), own, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("at_once", [1, 1 << 30])
def test_sizes_are_means_over_the_channels_of_a_scan(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BYTES_AT_ONCE", at_once)
    call = drawn_call(6, 9, 2, 2)
    row = torch.stack([torch.full((9,), 0.5), torch.linspace(0.9, 0.1, 9)], -1)
    scan = Scan(0, torch.arange(3, 6), attention_tokens(row.double().numpy()[None]))
    # Tokens are in the order of the image, from left to right, and the scan comes from the right.
    expected = weights_by_loops(call, 1, range(3, 6)).flip(0, 1)
    torch.testing.assert_close(mean_sizes(call, 1, scan), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("network", [vim.Vim(SIDE, depth=2), vmamba.VMamba(depths=(1, 1))])
def test_weights_of_a_block_are_those_of_all_its_scans(network: nn.Module) -> None:
    images = torch.randn(2, 3, SIDE, SIDE)
    blocks = scans_of(as_given(network))
    found: dict[int, list[Tensor]] = {index: [] for index in blocks}

    def keep(index: int, image: int, weights: Tensor) -> None:
        assert image == len(found[index])
        found[index].append(weights.double())

    with scanning(network, blocks, keep), torch.no_grad():
        network(images)
    for ours, theirs in zip(found.values(), weights_by_hand(network, images), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)


class Both(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.vim, self.vmamba = vim.Vim(SIDE, depth=1), vmamba.VMamba(depths=(1,))
        self.fails = False

    def forward(self, images: Tensor) -> Tensor:
        if self.fails:
            self.vim(images)
            raise KeyError("on the way")
        return self.vim(images) + self.vmamba(images)


@pytest.mark.parametrize("fails", [False, True])
def test_functions_are_as_they_were_after_a_pass_and_after_an_error(fails: bool) -> None:
    before = [vim.selective_scan_fn, vmamba.selective_scan_fn, vmamba.selective_scan_ref]
    network, calls = Both(), []
    network.fails = fails
    images = torch.randn(2, 3, SIDE, SIDE)
    try:
        with calling(calls.append):
            assert vim.selective_scan_fn is not before[0]
            network(images)
    except KeyError:
        assert fails
    # Two of Vim, and one of VMamba, whose function calls another.
    assert len(calls) == (2 if fails else 3)
    assert [vim.selective_scan_fn, vmamba.selective_scan_fn, vmamba.selective_scan_ref] == before


@torch.no_grad()
def test_a_pass_computes_what_it_does_unread() -> None:
    network = vim.Vim(SIDE, depth=1).eval()
    images = torch.randn(2, 3, SIDE, SIDE)
    expected = network(images)
    with scanning(network, scans_of(as_given(network)), lambda *_: None):
        assert torch.equal(network(images), expected)
    hooks = network._forward_hooks
    assert not hooks


@torch.no_grad()
def test_another_path_is_refused() -> None:
    network = vim.Vim(SIDE, depth=2).eval()
    blocks = scans_of(as_given(network))
    images = torch.randn(2, 3, SIDE, SIDE)
    with scanning(network, blocks, lambda *_: None):
        network(images)
        network.layers = network.layers[:1]
        with pytest.raises(VitscopeError, match="it scanned 2 times, and not 4 times"):
            network(images)
    larger = vim.Vim(2 * SIDE, depth=2)
    with (
        scanning(larger, blocks, lambda *_: None),
        pytest.raises(VitscopeError, match="it scanned another number of positions"),
    ):
        larger(torch.randn(1, 3, 2 * SIDE, 2 * SIDE))


def test_complex_scans_are_refused() -> None:
    call = drawn_call(2, 4, 2, 1)
    call["A"] = call["A"] * (1 + 1j)
    with pytest.raises(VitscopeError, match=r"^the network scans with complex numbers"):
        next(alpha_by_rows(call, 0, torch.arange(2)))
