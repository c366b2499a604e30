"""Rollout: against golden values, by hand in double precision, and in closed form."""

import io
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch
from PIL import Image
from torch import Tensor

from tests.helpers.attending import found_in, sharpened
from tests.helpers.golden import Golden
from tests.helpers.networks import mini
from tests.helpers.splits import on_model, shapes
from tests.helpers.tiers import some_of
from tests.measures.attention.by_hand import Seen, seen
from tests.measures.attention.test_numbers import ALL, NOWHERE, attention, grid, windows_of
from vitscope.data.split import Split
from vitscope.measures.attention.maps import Rollout, measure_attention_rollout, without_lowest
from vitscope.measures.attention.measure import ATTENTION_ROLLOUT_TABLE

Array = npt.NDArray[np.float64]


def test_golden_values(golden: Golden) -> None:
    text = (golden.shared / "golden" / "attention.json").read_text()
    expected = json.loads(text)["vit_ti"]["rollout_first_image"]
    model = golden.model("vit_ti")
    attentions = found_in(model, 32).attentions
    rollout = Rollout(attentions)
    rollout.run(model, golden.images(1)[0], "mean")
    of, values = rollout.result()
    assert (of, rollout.grid) == ("class token", (16, 16))
    np.testing.assert_allclose(values, expected, rtol=1e-5)


def pooled(old: Array, new: Array) -> Array:
    """Return the means of what is at most one pixel more than half of a step away, along each side.

    `old` and `new` are places of maps in pixels, of which the new one is half as fine; a patch
    merging takes two by two, and a convolution of 3 x 3 the one in the middle and those around it.
    """
    reach = np.diff(np.unique(new[:, 0])).min() / 2
    near = (np.abs(new[:, None] - old).max(-1) <= reach).astype(float)
    return near / near.sum(1, keepdims=True)


def middles(attentions: Sequence[Seen]) -> list[Array]:
    """Return the places of all tokens of each attention, row by row, in the middle of the image."""
    found = []
    for each in attentions:
        places = each.places.reshape(-1, 2)
        places = places + (32 - places.max()) / 2
        found.append(places[np.lexsort(places.T[::-1])])
    return found


def rolled_by_hand(attentions: Sequence[Seen], fuse: str) -> Array:
    """Return the rollout of the first image over its largest, with all matrices whole."""
    joint, before = None, None
    for each, places in zip(attentions, middles(attentions), strict=True):
        count = each.prefix + len(places)
        order = {tuple(place): each.prefix + number for number, place in enumerate(places)}
        shift = (32 - each.places.max()) / 2
        heads = getattr(np, fuse)(each.weights[0], axis=1)
        matrix = np.zeros((count, count))
        for window, weights in zip(each.places + shift, heads, strict=True):
            rows = [*range(each.prefix), *(order[tuple(place)] for place in window)]
            matrix[np.ix_(rows, rows)] = weights
        if joint is None:
            joint = np.eye(count)
        elif len(before) != len(places):
            merged = np.eye(count, each.prefix + len(before))
            merged[each.prefix :, each.prefix :] = pooled(before, places)
            joint = merged @ joint
        matrix += np.eye(count)
        joint = matrix / matrix.sum(1, keepdims=True) @ joint
        before = places
    assert joint is not None
    row = joint[0] if attentions[0].prefix else joint.mean(0)
    shown = row[attentions[0].prefix :]
    return shown / shown.max()


def test_the_lowest_weights_are_discarded() -> None:
    """As vit-explain does before it adds the identity, of all queries and keys together."""
    weights = torch.tensor([[[0.1, 0.2, 0.7], [0.5, 0.4, 0.1], [0.3, 0.3, 0.4]]])
    kept = without_lowest(weights, 0.5)
    # Of nine, the four lowest: two of 0.1, 0.2, and the first of 0.3.
    expected = [[[0.0, 0.0, 0.7], [0.5, 0.4, 0.0], [0.0, 0.3, 0.4]]]
    torch.testing.assert_close(kept, torch.tensor(expected))
    torch.testing.assert_close(without_lowest(weights, 0.0), weights)
    # The weights of the network are as they were.
    assert weights.min() > 0


CASES = ["swin_ti mean", "swin_ti max", "swin_ti min", "pit_ti mean"]


@pytest.mark.parametrize("case", some_of(CASES, "swin_ti max"))
def test_by_hand(golden: Golden, case: str) -> None:
    """Windows, rolls and pooling; a class token."""
    name, fuse = case.split()
    model, image = golden.model(name), golden.images(1)[0]
    rollout = Rollout(found_in(model, 32).attentions)
    rollout.run(model, image, fuse)
    of, values = rollout.result()
    side = {"swin_ti": 32, "pit_ti": 31}[name]
    assert rollout.grid == (side, side)
    assert of == {"swin_ti": "mean of queries", "pit_ti": "class token"}[name]
    expected = rolled_by_hand(seen(name, model, image), fuse)
    np.testing.assert_allclose(values, expected, rtol=1e-5)


def test_pooled_keys_are_what_they_cover() -> None:
    rollout = Rollout([attention(ALL[None], grid(2, 2)[None])])
    weights = torch.rand(1, 16, 4).softmax(-1)
    rollout.add(0, weights)
    row, column = np.divmod(np.arange(16), 4)
    covers = (np.arange(4)[:, None] == 2 * (row // 2) + column // 2) / 4
    expected = (weights[0].numpy() @ covers + np.eye(16)).mean(0)
    np.testing.assert_allclose(rollout.result()[1], expected / expected.max(), rtol=1e-5)


def rolled(*matrices: Tensor, places: Array) -> Tensor:
    """Return the rollout of attention (windows, queries, keys) of the same places."""
    rollout = Rollout([attention(places)] * len(matrices))
    for number, matrix in enumerate(matrices):
        rollout.add(number, matrix)
    return rollout.result()[1]


WITH_CLASS = np.concatenate([NOWHERE, ALL])[None]


def test_attention_to_all_alike_is_of_all_alike() -> None:
    even = torch.full((1, 17, 17), 1 / 17)
    torch.testing.assert_close(rolled(even, even, even, places=WITH_CLASS), torch.ones(16))


def test_of_one_token_that_looks_at_one_other() -> None:
    """The class looks at token 3 with all it has, which looks at token 5; others at themselves."""
    matrix = torch.eye(17)[None].clone()
    matrix[0, 0], matrix[0, 1 + 3] = torch.eye(17)[1 + 3], torch.eye(17)[1 + 5]
    once = rolled(matrix, places=WITH_CLASS)
    assert once.nonzero().tolist() == [[3]]
    # Of two steps: half of its own row, a quarter at 3; half of that of 3, half of it at 5.
    twice = rolled(matrix, matrix, places=WITH_CLASS)
    expected = torch.zeros(16)
    expected[3], expected[5] = 0.25 + 0.25, 0.25
    torch.testing.assert_close(twice, expected / 0.5)


def test_windows_keep_to_themselves() -> None:
    places = windows_of(2, 4)
    generator = torch.Generator().manual_seed(0)
    weights = torch.rand(4, 4, 4, generator=generator)
    weights = weights / weights.sum(-1, keepdim=True)
    rollout = Rollout([attention(places)])
    rollout.add(0, weights)
    joint = rollout._joint
    for row, column in np.ndindex(16, 16):
        same = (row // 8, row % 4 // 2) == (column // 8, column % 4 // 2)
        assert bool(joint[row, column] > 0) == same
    torch.testing.assert_close(joint.sum(1), torch.ones(16))


def test_a_class_that_comes_at_the_end_takes_of_what_there_is() -> None:
    rollout = Rollout([attention(ALL[None]), attention(NOWHERE[None], WITH_CLASS)])
    rollout.add(0, torch.eye(16)[None])
    weights = torch.arange(17.0)[None, None]
    rollout.add(1, weights / weights.sum())
    of, values = rollout.result()
    assert of == "class token"
    torch.testing.assert_close(values, torch.arange(1.0, 17) / 16)


def test_a_map_that_is_pooled_between() -> None:
    rollout = Rollout([attention(ALL[None]), attention(grid(2, 2)[None])])
    rollout.add(0, torch.eye(16)[None])
    looks_at_last = torch.zeros(1, 4, 4)
    looks_at_last[..., 3] = 1
    rollout.add(1, looks_at_last)
    assert rollout.grid == (4, 4)
    # Of four tokens each has half of itself and half of the last, which has all of itself.
    shares = torch.tensor([0.5, 0.5, 0.5, 2.5]) / 2.5
    expected = shares.view(2, 2).repeat_interleave(2, 0).repeat_interleave(2, 1).flatten()
    torch.testing.assert_close(rollout.result()[1], expected)


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Split:
    return shapes(tmp_path_factory.mktemp("split") / "test.safetensors", 20)


def test_the_table(images: Split, tmp_path: Path) -> None:
    model, points = mini("pit")
    given = on_model(sharpened(model), images, cut_points=points)
    chosen = {"shown": 3, "images": 10, "seed": 4}
    table = measure_attention_rollout(given, "mean", 0.0, chosen)
    ATTENTION_ROLLOUT_TABLE.write(table, tmp_path / "table.parquet")
    back = ATTENTION_ROLLOUT_TABLE.read(tmp_path / "table.parquet")
    rows = np.sort(np.random.default_rng(4).permutation(20)[:10])[:3]
    assert back["image"].tolist() == rows.tolist()
    assert back["of"].unique() == ["class token"]
    assert (back["height"] == 10).all()
    assert (back["width"] == 10).all()
    for row, rollout, picture in zip(rows, back["rollout"], back["picture"], strict=True):
        assert (len(rollout), max(rollout)) == (100, 1)
        shown = np.asarray(Image.open(io.BytesIO(picture)))
        np.testing.assert_array_equal(shown.transpose(2, 0, 1), images.images([row])[0])
    assert len({tuple(rollout) for rollout in back["rollout"]}) == 3
    assert table["fusion"].unique() == ["mean"]
    fewer = measure_attention_rollout(given, "max", 0.9, {**chosen, "shown": 1})
    assert tuple(fewer["rollout"][0]) != tuple(table["rollout"][0])
    # A table says what was left out of it.
    assert fewer["fusion"].unique() == ["max, lowest 90 % discarded"]
