"""Scans have the places that their values come from; what nobody can place is refused."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import vim
import vmamba
from given import SIDE, as_given
from reference import selective_scan_ref as selective_scan_fn
from torch import Tensor, nn
from torch.nn.functional import silu
from vitscope_scans.compute import measure_scan_maps
from vitscope_scans.finding import Scan, calling, scans_of

from vitscope.errors import VitscopeError


def places_of(scan: Scan) -> np.ndarray:
    """Return the places that a scan passes, in its order; NaN for a token without one."""
    places = np.concatenate([scan.tokens.places, np.full((scan.tokens.prefix, 2), np.nan)])
    return places[scan.tokens.numbers[0]]


def images_of_places(height: int, width: int) -> Tensor:
    """Return images whose first two channels hold row and column, as shares of the sides."""
    rows, columns = ((torch.arange(n) + 0.5) / n for n in (height, width))
    planes = [rows[:, None].expand(height, width), columns.expand(height, width)]
    return torch.stack([*planes, torch.zeros(height, width)]).expand(2, -1, -1, -1)


@torch.no_grad()
def carry_places(network: nn.Module) -> None:
    """Let the first two channels of a network's first scan hold the place of each token."""
    for name, weight in network.named_parameters():
        if name in ("pos_embed", "cls_token") or name.endswith("bias"):
            weight.zero_()
        if name.startswith("patch_embed") and weight.ndim == 4:
            weight.zero_()
            weight[[0, 1], [0, 1]] = 1 / weight[0, 0].numel()
        if "in_proj.weight" in name:
            weight.copy_(torch.eye(*weight.shape))
        if name.endswith("conv.weight"):
            weight.zero_()
            weight[(..., 1, 1) if weight.ndim == 4 else (..., -1)] = 1
    for module in network.modules():
        if "norm" in vars(module).get("_modules", {}):
            module.norm = nn.Identity()


def truth(network: nn.Module, images: Tensor) -> list[np.ndarray]:
    """Return the places that values of the first block's scans come from, by channels of u."""
    calls: list[Any] = []
    with calling(calls.append), torch.no_grad():
        network(images)
    # Inverts the activation before the scan, which grows where values are not negative.
    values = torch.linspace(0, 1, 100_001, dtype=torch.float64)
    return [
        np.interp(call["u"][0].double().numpy(), silu(values).numpy(), values.numpy())
        for call in calls
    ]


@pytest.mark.parametrize("size", [(16, 16), (16, 24)])
def test_places_of_vim_are_those_that_its_scans_read(size: tuple[int, int]) -> None:
    class Wide(vim.Vim):
        def __init__(self) -> None:
            super().__init__(SIDE, depth=1)
            self.middle = size[0] * size[1] // 32
            self.pos_embed = nn.Parameter(torch.zeros(1, 2 * self.middle + 1, 16))

    network = Wide()
    carry_places(network)
    scans = [scan for each in scans_of(as_given(network, size)).values() for scan in each]
    found = truth(network, images_of_places(*size))
    assert [scan.call for scan in scans] == [0, 1]
    for scan, values in zip(scans, found, strict=True):
        places = places_of(scan)
        (token,) = np.flatnonzero(np.isnan(places[:, 0]))
        assert token == network.middle
        np.testing.assert_allclose(np.nan_to_num(places), values[:2].T, rtol=0, atol=1e-4)


def scan_by_drawn_paths(x: Tensor) -> Tensor:
    """Return four sequences on paths that are drawn at random."""
    generator = torch.Generator().manual_seed(3)
    flat = x.flatten(2)
    paths = [torch.randperm(flat.shape[2], generator=generator) for _ in range(4)]
    return torch.stack([flat[..., path] for path in paths], 1)


@pytest.mark.parametrize("way", [vmamba.scan_by_stack, vmamba.scan_by_writing, scan_by_drawn_paths])
@pytest.mark.parametrize("size", [(16, 16), (16, 24)])
def test_places_of_vmamba_are_those_that_its_scans_read(
    way: Callable[[Tensor], Tensor], size: tuple[int, int]
) -> None:
    network = vmamba.VMamba(depths=(1,))
    carry_places(network)
    network.layers[0].op.cross_scan = way
    ((_, scans),) = scans_of(as_given(network, size)).items()
    (values,) = truth(network, images_of_places(*size))
    assert [scan.channels.tolist() for scan in scans] == np.arange(64).reshape(4, 16).tolist()
    for number, scan in enumerate(scans):
        expected = values[16 * number :][:2].T
        np.testing.assert_allclose(places_of(scan), expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("network", "indices", "kinds"),
    [
        (vim.Vim(SIDE, depth=2), [1, 2], ["stem", "ssm", "ssm"]),
        (vmamba.VMamba(depths=(1, 1)), [1, 4], ["stem", "ssm", "mlp", "pool", "ssm", "mlp"]),
    ],
)
def test_scans_belong_to_the_cut_points_of_blocks_that_pass_a_state(
    network: nn.Module, indices: list[int], kinds: list[str]
) -> None:
    given = as_given(network)
    assert [point.kind for point in given.cut_points] == kinds
    assert [*scans_of(given)] == indices


class Scanning(nn.Module):
    """A network that scans what `make` makes of its map, and adds the mean to its tokens."""

    def __init__(self, make: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.stem, self.make = nn.Conv2d(3, 4, 4, 4), make
        self.project, self.head = nn.Linear(4, 4), nn.Linear(4, 10)

    def forward(self, images: Tensor) -> Tensor:
        x = self.stem(images)
        u = self.make(x)
        given = torch.ones(len(u), 1, u.shape[2])
        y = selective_scan_fn(u, u.sigmoid(), -torch.ones(u.shape[1], 1), given, given)
        tokens = x.flatten(2).transpose(1, 2)
        tokens = tokens + self.project(y.mean(2).view(len(x), -1, 4)[:, :1])
        return self.head(tokens.mean(1))


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (
            lambda x: x.flatten(2).sort(-1).values,
            "nobody can tell where in the image the positions of a scan of '0' are: leave "
            "the model out of this figure.",
        ),
        (
            lambda x: x.mean((2, 3), keepdim=True).flatten(2).expand(-1, -1, 7),
            "nobody can tell where in the image the positions of a scan of '0' are: leave "
            "the model out of this figure.",
        ),
        (
            lambda x: x.flatten(2).unflatten(2, (2, -1)).transpose(1, 2).flatten(0, 1),
            "a scan of '0' does not take images one by one.",
        ),
        (
            lambda x: torch.cat([x.flatten(2), x.flatten(2)], -1),
            "a scan of '0' passes a place of the image twice.",
        ),
        (
            lambda x: torch.cat([x[..., :2, :].flatten(2), x[..., 2:, :].flatten(2)], 1),
            "the scans of '0' do not pass the same tokens.",
        ),
    ],
)
def test_what_nobody_can_place_is_refused(make: Callable[[Tensor], Tensor], why: str) -> None:
    with pytest.raises(VitscopeError) as refused:
        scans_of(as_given(nn.Sequential(Scanning(make))))
    assert str(refused.value) == f"models.net: {why}"


def test_a_path_that_fills_no_rows_and_columns_has_no_map() -> None:
    network = nn.Sequential(Scanning(lambda x: x.flatten(2)[..., :-1]))
    given = as_given(network)
    ((scan,),) = scans_of(given).values()
    assert len(scan.tokens.places) == (SIDE // 4) ** 2 - 1
    shows, chosen = {"block": -1, "queries": None}, {"images": 1, "seed": 0}
    with pytest.raises(VitscopeError, match=r"models.net: what '0' scans does not fill rows and"):
        measure_scan_maps(given, shows, chosen)


class Convolving(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.conv = nn.Conv2d(3, 4, 4, 4), nn.Conv2d(4, 4, 3, padding=1)
        self.head = nn.Linear(4, 10)

    def forward(self, images: Tensor) -> Tensor:
        x = self.stem(images)
        return self.head((x + self.conv(x)).mean((2, 3)))


def test_a_network_that_does_not_scan_is_refused() -> None:
    with pytest.raises(VitscopeError) as refused:
        scans_of(as_given(Convolving()))
    assert str(refused.value) == (
        "models.net: no selective scan was found: the network calls no global function of a module "
        "that is named selective_scan_fn or selective_scan_ref and takes u, delta, A, B, C; leave "
        "the model out of this figure."
    )
