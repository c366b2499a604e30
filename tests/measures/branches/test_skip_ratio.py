"""Ratios of norms: in closed form, and against what hooks on modules see."""

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import gmean
from torch import Tensor, nn

from tests.helpers.networks import described, mini, mini_blocks
from tests.helpers.splits import on_model, shapes
from tests.helpers.written import SMALL, built
from tests.measures.branches.test_lesion import IMAGES, scaled_vit
from vitscope.errors import VitscopeError
from vitscope.jobs.tables import find_table
from vitscope.measures.branches.skip_ratio import measure_skip_ratio, ratio_table, read_skip_ratios
from vitscope.networks.finding.blocks import list_blocks

CHOSEN = {"shown": 6, "images": 10, "seed": 0}
BOOTSTRAP = {"resamples": 50, "seed": 0}


def logs_of(model: nn.Module, images: Tensor = IMAGES) -> dict[tuple[int, str], np.ndarray]:
    points = list_blocks("net", model, described()).points
    return read_skip_ratios(model, points, [images])


class Scaled(nn.Module):
    def __init__(self, way: str) -> None:
        super().__init__()
        self.way = way
        self.conv = nn.Conv2d(4, 4, 1, bias=False)
        self.factor = nn.Parameter(torch.tensor(2.0))
        nn.init.zeros_(self.conv.weight)
        self.conv.weight.data.diagonal().copy_(torch.full((1, 1, 4), 3.0))

    def forward(self, x: Tensor) -> Tensor:
        branch = self.conv(x)
        if self.way == "addcmul":
            return torch.addcmul(x, branch, self.factor.expand_as(x))
        if self.way == "stream in place":
            return x.clone().add_(branch * self.factor)
        if self.way == "branch in place":
            return (branch * self.factor).add_(x)
        return x + branch * self.factor


WAYS = ["plain", "addcmul", "stream in place", "branch in place"]


@pytest.mark.parametrize("way", WAYS)
def test_a_branch_six_times_as_large_has_a_ratio_of_a_sixth(way: str) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 4, 4), Scaled(way), Scaled(way), nn.Flatten())
    logs = logs_of(model.append(nn.Linear(256, 10)))
    assert [kind for _, kind in logs] == ["positions", "positions"]
    for values in logs.values():
        np.testing.assert_allclose(np.exp(values), 1 / 6, rtol=1e-6)


def norms(tokens: Tensor) -> np.ndarray:
    return tokens.double().flatten(1).norm(dim=1).numpy()


def test_class_token_and_positions_are_what_hooks_see() -> None:
    """Of a ViT with layer scales, whose branches end behind these."""
    torch.manual_seed(0)
    model = scaled_vit().eval()
    seen: dict[int, tuple[Tensor, Tensor]] = {}
    for number, block in enumerate(model.blocks):

        def keep(module, inputs, output, number=number):
            seen[2 * number + 1] = (
                inputs[0].clone(),
                module.ls1(module.attn(module.norm1(inputs[0]))),
            )

        block.register_forward_hook(keep)
    logs = logs_of(model)
    assert len(logs) == 2 * 2 * len(model.blocks)
    for index, (stream, branch) in seen.items():
        for kind, tokens in (("class_token", slice(0, 1)), ("positions", slice(1, None))):
            expected = np.log(norms(stream[:, tokens]) / norms(branch[:, tokens]))
            np.testing.assert_allclose(logs[index, kind], expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", SMALL)
def test_every_sum_of_every_family_has_a_ratio(name: str) -> None:
    torch.manual_seed(0)
    model = built(name).eval()
    for parameter in model.parameters():
        if parameter.ndim == 1 or not parameter.any():
            nn.init.uniform_(parameter, 0.5, 1.5)
    points = list_blocks("net", model, described()).points
    logs = read_skip_ratios(model, points, [IMAGES[:2], IMAGES[2:]])
    assert {index for index, _ in logs} == {n for n, each in enumerate(points) if each.join}
    for values in logs.values():
        assert values.shape == (len(IMAGES),)
        assert np.isfinite(values).all()
    for key, values in read_skip_ratios(model, points, [IMAGES]).items():
        np.testing.assert_allclose(logs[key], values, rtol=0, atol=1e-5)


def test_the_table_has_geometric_means_and_their_intervals() -> None:
    blocks = pd.DataFrame({"index": [0, 1], **dict.fromkeys(["model", "name", "kind"], "a")})
    blocks = blocks.reindex(columns=[*find_table("blocks").columns])
    table = ratio_table(
        {(1, "positions"): np.log([1.0, 4.0]), (1, "class_token"): np.array([0.0, np.nan])},
        blocks,
        BOOTSTRAP,
    ).set_index("tokens")
    assert table.loc["positions", "ratio"] == pytest.approx(2, rel=1e-12)
    assert table.loc["positions", ["ci_low", "ci_high"]].tolist() == pytest.approx([1, 4])
    assert table.loc["class_token", ["ratio", "ci_low", "ci_high"]].isna().all()


def test_resamples_are_geometric_means_of_the_same_images() -> None:
    generator = np.random.default_rng(1)
    ratios = generator.lognormal(0, 1, (2, 9))
    blocks = pd.DataFrame({"index": [1, 2]}).reindex(columns=[*find_table("blocks").columns])
    logs = {(1, "positions"): np.log(ratios[0]), (2, "positions"): np.log(ratios[1])}
    table = ratio_table(logs, blocks, BOOTSTRAP)
    weights = np.random.default_rng(BOOTSTRAP["seed"]).multinomial(9, [1 / 9] * 9, size=50)
    for of_images, row in zip(ratios, table.to_dict("records"), strict=True):
        means = [gmean(np.repeat(of_images, times)) for times in weights]
        np.testing.assert_allclose(row["ratio_resampled"], means, rtol=1e-6)


@pytest.mark.parametrize("name", ["vit", "resnet"])
def test_a_model_of_mini_is_measured(name: str, tmp_path) -> None:
    split = shapes(tmp_path / "test.safetensors", 20)
    model, points = mini(name)
    blocks = mini_blocks(name).table
    table = measure_skip_ratio(
        on_model(model, split, cut_points=points, blocks=blocks), CHOSEN, BOOTSTRAP
    )
    assert (table["images"] == 6).all()
    assert {*table["tokens"]} == ({"positions", "class_token"} if name == "vit" else {"positions"})
    assert (table["ci_low"] < table["ratio"]).all()


def test_a_network_without_branches_is_refused(tmp_path) -> None:
    split = shapes(tmp_path / "test.safetensors", 20)
    given = on_model(nn.Flatten(), split, blocks=pd.DataFrame())
    with pytest.raises(VitscopeError, match="no cut point of the model has a residual branch"):
        measure_skip_ratio(given, CHOSEN, BOOTSTRAP)
