"""Rollout: against golden values, by hand in double precision, and in closed form."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
import torch
from PIL import Image
from torch import Tensor, nn

from tests.helpers.attending import found_in, sharpened, weights_of
from tests.helpers.golden import Golden
from tests.helpers.networks import mini
from tests.helpers.splits import CENTER, SPREAD, built, on_model, shapes
from tests.helpers.tiers import some_of
from tests.measures.attention.by_hand import Seen, seen
from tests.measures.attention.test_compute import OfTheClassToo
from tests.measures.attention.test_numbers import ALL, NOWHERE, attention, grid, windows_of
from tests.networks.attention.test_reading import Padded
from vitscope.data.split import Split
from vitscope.drawing.pictures import read_picture
from vitscope.errors import VitscopeError
from vitscope.measures.attention.maps import (
    AttentionMaps,
    maps_of,
    measure_attention_maps,
    measure_attention_rollout,
)
from vitscope.measures.attention.measure import (
    ATTENTION_MAPS_TABLE,
    ATTENTION_ROLLOUT_TABLE,
    AttentionMapsSettings,
)
from vitscope.measures.rollout import Rollout, discard_lowest_attention
from vitscope.measures.shown import on_subject
from vitscope.networks.attention.reading import Attention
from vitscope.networks.building.timm_import import import_timm

Array = npt.NDArray[np.float64]


def test_golden_values(golden: Golden) -> None:
    expected = golden.attention["rollout_first_image"]
    model = golden.model("vit_ti")
    rollout = Rollout(found_in(model, 32).attentions)
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
    kept = discard_lowest_attention(weights, 0.5)
    # Of nine, the four lowest: two of 0.1, 0.2, and the first of 0.3.
    expected = [[[0.0, 0.0, 0.7], [0.5, 0.4, 0.0], [0.0, 0.3, 0.4]]]
    torch.testing.assert_close(kept, torch.tensor(expected))
    torch.testing.assert_close(discard_lowest_attention(weights, 0.0), weights)
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
    assert (back[["height", "width"]] == 10).all(axis=None)
    for row, rollout, picture in zip(rows, back["rollout"], back["picture"], strict=True):
        assert (len(rollout), max(rollout)) == (100, 1)
        shown = read_picture(picture).transpose(2, 0, 1)
        np.testing.assert_array_equal(shown, images.images([row])[0])
    assert len({tuple(rollout) for rollout in back["rollout"]}) == 3
    assert table["fusion"].unique() == ["mean"]
    fewer = measure_attention_rollout(given, "max", 0.9, {**chosen, "shown": 1})
    assert tuple(fewer["rollout"][0]) != tuple(table["rollout"][0])
    # A table says what was left out of it.
    assert fewer["fusion"].unique() == ["max, lowest 90 % discarded"]


DEFAULTS = {
    key: getattr(AttentionMapsSettings(), key)
    for key in ("block", "query", "queries", "head", "mass")
}
CHOSEN = {"shown": 2, "images": 6, "seed": 1}


@pytest.fixture(scope="module")
def few_images(tmp_path_factory: pytest.TempPathFactory) -> Split:
    return shapes(tmp_path_factory.mktemp("split") / "test.safetensors", 9)


def small_vit() -> nn.Module:
    """Return a ViT of two blocks with three heads, whose tokens are of 4 x 4 pixels."""
    transformer = import_timm("timm.models.vision_transformer").VisionTransformer
    return transformer(32, 4, num_classes=5, embed_dim=24, depth=2, num_heads=3)


def shown(name: str, images: Split, **shows: Any) -> tuple[pd.DataFrame, list[Attention], Any]:
    model = sharpened(mini(name)[0] if name == "swin" else small_vit())
    table = measure_attention_maps(on_model(model, images), DEFAULTS | shows, CHOSEN)
    attentions = found_in(model, 32).attentions
    rows = np.sort(np.random.default_rng(1).permutation(9)[:6])[:2]

    def of(number: int) -> torch.Tensor:
        batch = images.normalize(rows, CENTER, SPREAD)
        return weights_of(model, [attentions[number]], batch)[0]

    return table, attentions, of


def test_golden_values_of_the_class(golden: Golden) -> None:
    expected = golden.attention["cls_last_block_first_image"]
    model = golden.model("vit_ti")
    maps = AttentionMaps("vit_ti", 32, found_in(model, 32).attentions[-1])
    maps.request_heads(None)
    found, returned = maps_of(model, maps, golden.images(1)[0])
    torch.testing.assert_close(returned, model(golden.images(1)[0]))
    assert [each["of"] for each in found] == ["class token"] * 3
    assert [each["head"] for each in found] == [0, 1, 2]
    np.testing.assert_allclose([each["weights"] for each in found], expected, rtol=1e-5)


def test_the_table_of_maps(few_images: Split, tmp_path: Path) -> None:
    table, _, of = shown("vit", few_images, mass=0.6)
    ATTENTION_MAPS_TABLE.write(table, tmp_path / "table.parquet")
    back = ATTENTION_MAPS_TABLE.read(tmp_path / "table.parquet")
    rows = np.sort(np.random.default_rng(1).permutation(9)[:6])[:2]
    # Three heads, and four queries of one: the middles of the quarters.
    assert len(back) == 2 * (3 + 4)
    assert back["image"].unique().tolist() == rows.tolist()
    assert (back["mass"] == 0.6).all()
    assert (back["attention"] == 1).all()
    assert (back["name"] == "blocks.1.attn").all()
    assert (back[["height", "width"]] == 8).all(axis=None)
    heads, queries = (back[back["shows"] == what] for what in ("heads", "queries"))
    assert heads["of"].unique() == ["class token"]
    assert heads[["query_row", "query_column"]].isna().all(axis=None)
    read = of(1)
    for number, row in enumerate(rows):
        of_image = heads[heads["image"] == row]
        expected = read[number, 0, :, 0, 1:]
        np.testing.assert_allclose([*of_image["weights"]], expected, rtol=1e-5)
        picture = read_picture(of_image["picture"].iloc[0]).transpose(2, 0, 1)
        np.testing.assert_array_equal(picture, few_images.images([row])[0])
    assert (queries["head"] == 0).all()
    # Pixel 8 of 32 lies between the second and the third token, of 4 pixels each.
    middles = queries[queries["image"] == rows[0]][["query_row", "query_column"]]
    assert middles.to_numpy().tolist() == [[6, 6], [6, 22], [22, 6], [22, 22]]


@pytest.mark.parametrize(
    ("block", "query", "token"),
    [(-2, [14, 1], (3, 0)), ("blocks.0", [32, 31.9], (7, 7)), ("blocks.0.attn", [0, 0], (0, 0))],
)
def test_a_query_is_the_token_that_is_nearest_to_a_pixel(
    few_images: Split, block: int | str, query: list[float], token: tuple[int, int]
) -> None:
    table, attentions, of = shown(
        "vit", few_images, query=query, queries=[query], head=2, block=block
    )
    assert (table["attention"] == 0).all()
    assert (table["name"] == attentions[0].name).all()
    assert (table["of"] == "query").all()
    assert (table["query_row"] == 4 * token[0] + 2).all()
    assert (table["query_column"] == 4 * token[1] + 2).all()
    expected = of(0)[0, 0, :, 1 + 8 * token[0] + token[1], 1:]
    first = table[table["image"] == table["image"].iloc[0]]
    np.testing.assert_allclose([*first["weights"]], expected[[0, 1, 2, 2]], rtol=1e-5)
    assert first["head"].tolist() == [0, 1, 2, 2]


def test_where_windows_are_a_map_is_of_one_of_them(few_images: Split) -> None:
    """Of the second block of Swin: windows of 4 x 4 on 16 x 16, rolled by two."""
    table, attentions, of = shown("swin", few_images, block=1, query=[15, 29], queries=[[15, 29]])
    assert attentions[1].windows == 16
    # Tokens of 2 pixels: row 7 and column 14, in the window of rows 6 to 9 and, around the edge,
    # of columns 14, 15, 0 and 1, which are masked.
    maps = np.stack(table["weights"]).reshape(-1, 16, 16)
    inside = np.zeros((16, 16), bool)
    inside[6:10, 14:] = True
    assert (maps[:, inside] > 0).all()
    assert maps[:, ~inside].max() < 1e-30
    np.testing.assert_allclose(maps.sum((1, 2)), 1, rtol=1e-5)
    window = 3 * 4 - 4 - 4 + 3
    rows = of(1)[0, window, 0, 1 * 4 + 0].reshape(4, 4)
    np.testing.assert_allclose(maps[0][6:10, 14:], rows[:, :2], rtol=1e-4)


def test_of_a_network_without_a_class_the_mean_of_queries(few_images: Split) -> None:
    table, _, of = shown("swin", few_images, block=0)
    heads = table[table["shows"] == "heads"]
    assert heads["of"].unique() == ["mean of queries"]
    maps = np.stack(heads["weights"]).reshape(2, 1, 16, 16)
    # Each window has one sixteenth of all queries, whose mean it takes.
    read = of(0).mean(-2).unflatten(-1, (4, 4)) / 16
    expected = read.unflatten(1, (4, 4)).permute(0, 3, 1, 4, 2, 5).reshape(2, 1, 16, 16)
    np.testing.assert_allclose(maps, expected, rtol=1e-5)
    np.testing.assert_allclose(maps.sum((2, 3)), 1, rtol=1e-5)


def test_what_only_fills_windows_is_not_shown() -> None:
    model = sharpened(Padded())
    (attention,) = found_in(model, 16).attentions
    maps = AttentionMaps("padded", 16, attention)
    maps.request_heads([15, 15])
    image = torch.randn(1, 3, 16, 16)
    (head, _), _ = maps_of(model, maps, image)
    (read,) = weights_of(model, [attention], image)
    # The last window has one token, and eight places that hold none.
    assert (head["height"], head["width"]) == (4, 4)
    expected = np.zeros(16)
    expected[15] = read[0, 3, 0, 0, 0]
    np.testing.assert_allclose(head["weights"], expected, rtol=1e-5, atol=1e-12)
    assert 0 < expected[15] < 1
    np.testing.assert_allclose([head["query_row"], head["query_column"]], 16 * ALL[15])


def test_without_a_block_the_last_whose_queries_have_a_place(few_images: Split) -> None:
    given = on_model(OfTheClassToo(), few_images)
    table = measure_attention_maps(given, DEFAULTS, CHOSEN)
    assert (table["attention"] == 0).all()
    # That of the class alone can be asked for, and then no query has a map.
    table = measure_attention_maps(given, DEFAULTS | {"block": -1}, CHOSEN)
    assert {*table["shows"]} == {"heads"}
    assert {*table["of"]} == {"class token"}
    with pytest.raises(VitscopeError, match=r"'second' of models\.net has no queries with a place"):
        measure_attention_maps(given, DEFAULTS | {"block": "second", "query": [1, 1]}, CHOSEN)


@pytest.mark.parametrize(
    ("shows", "sentence"),
    [
        (
            {"block": 2},
            r"block: found 2, allowed for models\.net, which has 2 attentions: -2 to 1, ",
        ),
        ({"block": -3}, r"block: found -3, allowed for models\.net"),
        ({"block": "blocks.2"}, r"found 'blocks\.2', and models\.net has no attention there; it"),
        ({"block": "block.1.attn"}, r"Did you mean 'blocks\.1\.attn'\?"),
        ({"head": 3}, r"head: found 3, allowed for 'blocks\.1\.attn' of models\.net: 0 to 2\."),
        ({"query": [33, 1]}, r"query \[33, 1\], and images of models\.net have 32 x 32 pixels\."),
        ({"queries": [[1, 1], [1, -2]]}, r"found the query \[1, -2\], and images of models\.net"),
    ],
)
def test_what_is_not_there_is_refused(
    few_images: Split, shows: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(VitscopeError, match=sentence):
        shown("vit", few_images, **shows)


class Named(nn.Module):
    """A ViT with the outputs of ten classes, of which it says what a test wants."""

    def __init__(self, logits: list[float]) -> None:
        super().__init__()
        self.vit = small_vit()
        self.logits = nn.Buffer(torch.tensor(logits))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.logits + 0 * self.vit(images).sum(1, keepdim=True)


def test_what_the_network_takes_an_image_for(few_images: Split) -> None:
    logits = [0.0] * 10
    # Nine others of exp(0): 0.9 of the sum.
    logits[3] = float(np.log(81))
    table = measure_attention_maps(on_model(Named(logits), few_images), DEFAULTS, CHOSEN)
    assert table["class_name"].unique() == [few_images.classes[3]]
    np.testing.assert_allclose(table["confidence"], 0.9, rtol=1e-6)
    # More outputs than there are names.
    table = measure_attention_maps(on_model(Named([*logits, 9.0]), few_images), DEFAULTS, CHOSEN)
    assert table["class_name"].unique() == ["10"]
    given = on_model(Named(logits), few_images)
    given.settings["classes"] = None
    table = measure_attention_maps(given, DEFAULTS, CHOSEN)
    assert table[["class_name", "confidence"]].isna().all(axis=None)


@pytest.fixture
def masked(tmp_path: Path) -> Split:
    """The second of two images has a mask: its left half and the upper quarter of the right."""
    rng = np.random.default_rng(0)
    for name in ("a", "b"):
        pixels = rng.integers(0, 256, (32, 32, 3), np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"{name}.jpg")
    mask = np.zeros((32, 32), np.uint8)
    mask[:, :16] = mask[:8] = 255
    Image.fromarray(mask).save(tmp_path / "b.mask.png")
    return built(tmp_path / "split", {"kind": "folder", "path": str(tmp_path)}, classes=None)


BOTH = {"shown": 2, "images": 2, "seed": None}


@pytest.mark.parametrize("shown", ["weights", "rollout"])
def test_the_share_of_a_map_that_is_on_the_subject(masked: Split, shown: str) -> None:
    given = on_model(sharpened(small_vit()), masked)
    if shown == "weights":
        table = measure_attention_maps(given, DEFAULTS, BOTH)
    else:
        table = measure_attention_rollout(given, "mean", 0.0, BOTH)
    assert table.loc[table["image"] == 0, ["on_subject", "subject"]].isna().all(axis=None)
    for row in table[table["image"] == 1].to_dict("records"):
        values = np.reshape(row[shown], (8, 8))
        on = values[:, :4].sum() + values[:2, 4:].sum()
        assert row["on_subject"] == pytest.approx(on / values.sum(), rel=1e-12)
        assert row["subject"] == 0.5 + 0.125
        assert abs(row["on_subject"] - row["subject"]) > 1e-4


def test_an_even_rollout_has_on_the_subject_what_the_subject_has_of_the_image(
    masked: Split,
) -> None:
    """Without weights, every query attends to all keys alike."""
    network = small_vit()
    with torch.no_grad():
        for block in network.blocks:
            block.attn.qkv.weight.zero_()
            block.attn.qkv.bias.zero_()
    table = measure_attention_rollout(on_model(network, masked), "mean", 0.0, BOTH)
    _, row = table.to_dict("records")
    assert np.ptp(row["rollout"]) < 1e-6
    assert row["on_subject"] == pytest.approx(row["subject"], rel=1e-6)
    # Nothing of the map is left to be anywhere.
    assert on_subject(np.zeros(64), (8, 8), masked.mask(1))["on_subject"] is None


def test_an_image_that_was_cut_has_its_whole_picture(tmp_path: Path, few_images: Split) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (32, 48, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    source = {"kind": "folder", "path": str(tmp_path)}
    split = built(tmp_path / "split", source, classes=None, resize=32)
    one = {"shown": 1, "images": 1, "seed": None}
    table = measure_attention_rollout(on_model(small_vit(), split), "mean", 0.0, one)
    for column, expected in (("whole", pixels), ("picture", pixels[:, 8:40])):
        np.testing.assert_array_equal(read_picture(table[column][0]), expected)
    uncut = measure_attention_rollout(on_model(small_vit(), few_images), "mean", 0.0, one)
    assert uncut["whole"].tolist() == [None]
