"""The vectors of images: as hooks of a plain pass see them, at their places, and in shards."""

import numpy as np
import pandas as pd
import pytest
import torch

from tests.helpers.networks import mini
from tests.helpers.refusals import refusal
from tests.helpers.splits import CENTER, SPREAD, on_model
from vitscope.data.split import Split
from vitscope.measures.given import OnModel
from vitscope.measures.probe.measure import PROBE_PART
from vitscope.measures.probe.vectors import (
    draw_probed_places,
    measure_probe,
    pixels_of_probed_cells,
)
from vitscope.networks.finding.cut_points import Layout

IMAGES, TOKENS = 6, 2


def given(images: Split, name: str = "vit", batch_size: int = 3) -> OnModel:
    model, points = mini(name)
    return on_model(model, images, cut_points=points, batch_size=batch_size)


def part(job: OnModel, shard: int = 0, shard_size: int = IMAGES) -> pd.DataFrame:
    selection = {"images": IMAGES, "seed": None, "shard_size": shard_size}
    return measure_probe(job, shard, selection, TOKENS)


@pytest.fixture(scope="module")
def vit(images: Split) -> pd.DataFrame:
    return part(given(images))


def stacked(rows: pd.DataFrame) -> np.ndarray:
    return np.stack(rows.sort_values("image")["vector"].to_list())


def test_vectors_are_those_of_a_plain_pass(vit: pd.DataFrame, images: Split) -> None:
    model, points = mini("vit")
    seen = []
    model.blocks[4].register_forward_hook(lambda *each: seen.append(each[-1]))
    shown = images.normalize(range(IMAGES), CENTER, SPREAD)
    with torch.inference_mode():
        logits = model(shown)
    tokens = seen[0].numpy()
    index = [point.name for point in points].index("blocks.4.mlp")
    rows = vit[vit["index"] == index]
    of = {name: stacked(each[each["token"] == 0]) for name, each in rows.groupby("of")}
    np.testing.assert_allclose(of["prefix"], tokens[:, 0], atol=1e-5)
    np.testing.assert_allclose(of["mean"], tokens[:, 1:].mean(1), atol=1e-5)
    # Of each image another place of the map, which is 8 x 8; the same in any shard.
    single = rows[(rows["of"] == "token") & (rows["token"] == 1)].sort_values("image")
    row, column = np.floor(8 * draw_probed_places(0, IMAGES, TOKENS)[:, 1]).astype(int).T
    np.testing.assert_array_equal(
        single[["row", "column"]], np.stack([row, column], 1) / 8 + 1 / 16
    )
    drawn = tokens[np.arange(IMAGES), 1 + 8 * row + column]
    np.testing.assert_allclose(stacked(single), drawn, atol=1e-5)
    norms = np.linalg.norm(tokens[:, 1:], axis=2)
    relative = np.linalg.norm(drawn, axis=1) / np.median(norms, axis=1)
    np.testing.assert_allclose(single["norm"], relative, rtol=1e-4)
    # A cell has 4 x 4 pixels of three colours.
    pixels = np.stack(single["pixels"].to_list()).reshape(IMAGES, 3, 4, 4)
    for image in range(IMAGES):
        top, left = 4 * row[image], 4 * column[image]
        expected = shown[image, :, top : top + 4, left : left + 4]
        np.testing.assert_allclose(pixels[image], expected, atol=1e-6)
    found = single[["label", "predicted"]].to_numpy().T
    np.testing.assert_array_equal(found, [images.labels[:IMAGES], logits.argmax(1)])


def test_shards_are_parts_of_the_whole(vit: pd.DataFrame, images: Split) -> None:
    keys = ["index", "of", "token", "image"]
    shards = pd.concat([part(given(images), shard, 3) for shard in range(2)])
    both = [
        each.sort_values(keys, ignore_index=True)[[*PROBE_PART.columns]] for each in (vit, shards)
    ]
    for column in ("vector", "pixels"):
        one, other = (np.concatenate(each[column].to_list()) for each in both)
        np.testing.assert_array_equal(one, other)
    rest = [each.drop(columns=["vector", "pixels"]) for each in both]
    pd.testing.assert_frame_equal(*rest, check_exact=True)


def test_a_network_without_prefix_tokens_or_classes(images: Split) -> None:
    job = given(images, "resnet")
    job.settings["classes"] = None
    found = part(job)
    assert set(found["of"]) == {"mean", "token"}
    assert (found["predicted"] == -1).all()


def test_places_depend_on_the_number_of_an_image_alone() -> None:
    whole = draw_probed_places(0, 9, 3)
    np.testing.assert_array_equal(draw_probed_places(5, 4, 3), whole[5:])
    assert whole.min() >= 0
    assert whole.max() < 1


def test_cells_of_pixels() -> None:
    """Means over sixteenths of a cell; of a cell that has fewer pixels, these."""
    images = torch.from_numpy(np.random.default_rng(0).normal(size=(2, 3, 16, 24)))
    rows, columns = torch.tensor([[1], [0]]), torch.tensor([[0], [1]])
    found = pixels_of_probed_cells(images, (2, 3), rows, columns)
    cells = images[0, :, 8:, :8], images[1, :, :8, 8:16]
    means = [cell.reshape(3, 4, 2, 4, 2).mean((2, 4)).flatten() for cell in cells]
    torch.testing.assert_close(found[:, 0], torch.stack(means))
    single = pixels_of_probed_cells(images, (16, 24), rows, columns)
    torch.testing.assert_close(single[:, 0], torch.stack([images[0, :, 1, 0], images[1, :, 0, 1]]))


def test_the_first_token_that_is_no_position() -> None:
    tokens = torch.arange(2 * 6 * 3.0).reshape(2, 6, 3)
    in_order = Layout("nlc", prefix=2, grid=(2, 2), count=6)
    torch.testing.assert_close(in_order.first_prefix(tokens), tokens[:, 0])
    at_the_end = Layout("nlc", grid=(2, 2), count=6, tokens=(1, 0, 2, 3))
    torch.testing.assert_close(at_the_end.first_prefix(tokens), tokens[:, 4])
    for none in (Layout("nlc", grid=(2, 3), count=6), Layout("nchw"), Layout("nhwc")):
        assert none.first_prefix(tokens) is None


def test_maps_that_are_not_finite_are_refused(images: Split) -> None:
    job = given(images)
    with torch.no_grad():
        job.network.blocks[0].mlp.fc2.bias[0] = torch.inf
    assert refusal(part, job, 1, 3) == (
        "The feature map at blocks.0.mlp is not finite for image 3: check the checkpoint and the "
        "model's mean and std."
    )
