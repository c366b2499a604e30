"""Tables and figures of small networks, against plain loops over what their scans take."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import vim
import vmamba
from given import SIDE, weights_by_hand
from torch import Tensor, nn
from vitscope_scans.compute import mean_distance

import vitscope
from vitscope.errors import VitscopeError
from vitscope.measures import registry
from vitscope.measures.captions import caption_of

IMAGES = torch.rand(3, 3, SIDE, SIDE, generator=torch.Generator().manual_seed(1))
KINDS = ["scan_distance", "scan_maps", "scan_rollout"]


def made(which: str) -> nn.Module:
    torch.manual_seed(0)
    small = vim.Vim(SIDE, depth=2) if which == "vim" else vmamba.VMamba(depths=(1, 1))
    return small.eval()


def looked_at(which: str, **analysis: Any) -> Any:
    return vitscope.look(made(which), IMAGES, name=which, analysis=analysis)


@pytest.fixture(scope="module")
def scopes() -> dict[str, Any]:
    return {which: looked_at(which) for which in ("vim", "vmamba")}


@cache
def by_loops(which: str) -> list[list[Tensor]]:
    """Return the weights of each block and image between tokens, by rows of the image."""
    return weights_by_hand(made(which), IMAGES)


def places(count: int) -> np.ndarray:
    """Return the places of square maps of so many positions, in pixels."""
    side = int(count**0.5)
    centres = (np.arange(side) + 0.5) * SIDE / side
    return np.array([(row, column) for row in centres for column in centres])


@pytest.mark.parametrize("which", ["vim", "vmamba"])
def test_distances_are_those_of_plain_loops(which: str, scopes: dict[str, Any]) -> None:
    table = scopes[which].scans
    assert table["kind"].eq("ssm").all()
    for (_, row), of_images in zip(table.iterrows(), by_loops(which), strict=True):
        where = places(row["height"] * row["width"])
        means = []
        for weights in of_images:
            each = []
            for query, here in enumerate(where):
                taken = weights[query, : len(where)].numpy()
                away = np.hypot(*(where - here).T)
                each.append((taken * away).sum() / taken.sum())
            means.append(np.mean(each))
        assert row["distance"] == pytest.approx(np.mean(means), rel=1e-5)
        assert row["ci_low"] <= row["distance"] <= row["ci_high"]
        assert row["images"] == len(IMAGES)


def test_a_query_that_takes_from_no_token_with_a_place_is_left_out() -> None:
    """The last of three tokens has no place; the second takes from it alone."""
    weights = torch.tensor([[1.0, 3.0, 5.0], [0.0, 0.0, 2.0], [1.0, 1.0, 1.0]])
    where = torch.tensor([[1.0, 1.0], [4.0, 5.0]], dtype=torch.float64)
    assert mean_distance(weights, where) == pytest.approx(5 * 3 / 4, rel=1e-12)


def test_equal_distances_are_those_of_what_was_passed(scopes: dict[str, Any]) -> None:
    """In Vim, a query takes equally from what is before it, and from what is behind it."""
    where, middle = places(16), 8
    order = [*range(middle), None, *range(middle, 16)]
    distances = []
    for position, query in enumerate(order):
        if query is None:
            continue
        taken = np.zeros(16)
        for passed in (order[: position + 1], order[position:]):
            for key in passed:
                if key is not None:
                    taken[key] += 1 / len(passed)
        away = np.hypot(*(where - where[query]).T)
        distances.append((taken * away).sum() / taken.sum())
    np.testing.assert_allclose(scopes["vim"].scans["uniform"], np.mean(distances), rtol=1e-6)


@pytest.mark.parametrize("which", ["vim", "vmamba"])
def test_maps_are_rows_of_the_hidden_attention(which: str, scopes: dict[str, Any]) -> None:
    table = scopes[which].scan_maps
    of_last = by_loops(which)[-1]
    for image, maps in table[table["shows"] == "query"].groupby("image"):
        weights = of_last[int(image)]
        attention = (weights / weights.sum(1, keepdim=True)).numpy()
        if which == "vim":
            expected = {"class token": attention[16, :16]}
            assert maps["of"].tolist() == ["class token"]
        else:
            # Of 2 x 2 positions, those in the quarters are all that there are.
            expected = dict(enumerate(attention))
            assert maps[["row", "column"]].to_numpy().tolist() == places(4).tolist()
        for found, one in zip(maps["weights"], expected.values(), strict=True):
            np.testing.assert_allclose(found, one, rtol=1e-4, atol=1e-7)


def test_the_rollout_is_the_product_of_all_blocks(scopes: dict[str, Any]) -> None:
    table = scopes["vim"].scan_maps
    for image, row in enumerate(table[table["shows"] == "rollout"]["weights"]):
        joint = np.eye(17)
        for of_images in by_loops("vim"):
            weights = of_images[image].numpy()
            matrix = weights / weights.sum(1, keepdims=True) + np.eye(17)
            joint = matrix / matrix.sum(1, keepdims=True) @ joint
        np.testing.assert_allclose(row, joint[16, :16] / joint[16, :16].max(), rtol=1e-4)


def test_maps_of_queries_that_are_asked_for() -> None:
    scope = looked_at("vmamba", scan_maps={"images": 1, "block": 0, "queries": [[1, 15], [8, 3]]})
    table = scope.scan_maps
    asked = table[table["shows"] == "query"]
    assert asked[["row", "column"]].to_numpy().tolist() == [[2, 14], [6, 2]]
    assert asked["name"].tolist() == ["layers.0.op"] * 2
    weights = by_loops("vmamba")[0][0]
    attention = weights / weights.sum(1, keepdim=True)
    np.testing.assert_allclose(asked["weights"].iloc[0], attention[3], rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (
            {"block": 2},
            "analysis.scan_maps.block: found 2, allowed for models.vim, which has 2 blocks that "
            "scan: -2 to 1.",
        ),
        (
            {"queries": [[3, 17]]},
            "analysis.scan_maps.queries: found [3, 17], and images of models.vim have 16 x 16 "
            "pixels.",
        ),
    ],
)
def test_what_is_not_there_is_refused(settings: dict[str, Any], why: str) -> None:
    with pytest.raises(VitscopeError) as refused:
        looked_at("vim", scan_maps=settings).table("scan_maps")
    assert str(refused.value) == why


@pytest.mark.parametrize("which", ["vim", "vmamba"])
def test_receptive_fields_are_those_of_gradients_by_hand(which: str) -> None:
    """Of the measure of vitscope: gradients pass the scans."""
    table = looked_at(which, receptive_field={"images": 3}).table("receptive_field")
    network, read = made(which), {}
    modules = dict(network.named_modules())
    for name, module in modules.items():
        module.register_forward_hook(lambda _, __, output, name=name: read.update({name: output}))
    images = IMAGES.clone().requires_grad_()
    network(images)
    # A block of VMamba ends with the sum of its MLP.
    ends = {"stem": "patch_embed", "layers.0": "layers.0", "layers.1": "layers.1"}
    ends |= {"layers.0.mlp": "layers.0", "layers.2.mlp": "layers.2"}
    checked = 0
    for _, row in table.iterrows():
        value = read.get(ends.get(row["name"], ""))
        if value is None:
            continue
        if which == "vim":
            # The position in row 2 and column 2 of 4 x 4, and the class token before it.
            centre = value[:, :, 2, 2] if value.ndim == 4 else value[:, 2 * 4 + 2 + 1]
        else:
            centre = (
                value[:, :, 2, 2] if value.shape[-1] == 4 else value[:, row["row"], row["column"]]
            )
        (gradient,) = torch.autograd.grad(centre.sum(), images, retain_graph=True)
        expected = gradient.abs().sum(1).mean(0).ravel().numpy()
        np.testing.assert_allclose(row["contributions"], expected, rtol=1e-3, atol=1e-6)
        checked += 1
    assert checked >= 2


def test_figures_say_what_they_show(scopes: dict[str, Any]) -> None:
    both = vitscope.compare(scopes)
    assert {*KINDS} <= {*both.kinds()}
    for kind in KINDS:
        figure = both.plot(kind)
        parts = [figure, *figure.subfigs]
        said = [each.get_text() for part in parts for each in part.findobj(match=_is_text)]
        assert {"vim", "vmamba"} <= {text.partition(",")[0] for text in said}
        assert caption_of(registry.kinds()[kind]).startswith("**")


def _is_text(artist: Any) -> bool:
    return hasattr(artist, "get_text")


def test_declarations_import_nothing_heavy() -> None:
    heavy = "{'torch', 'pandas', 'matplotlib'}"
    code = f"import sys, vitscope_scans.measure; print({heavy} & {{*sys.modules}})"
    path = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
    run = [sys.executable, "-c", code]
    found = subprocess.run(
        run, env=os.environ | {"PYTHONPATH": path}, capture_output=True, check=True
    )
    assert found.stdout.decode().strip() == "set()"
