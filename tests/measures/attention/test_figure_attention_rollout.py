import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib.figure import Figure
from torch.nn.functional import interpolate

from tests.helpers.drawing import SWIN, VIT, laid_out
from tests.helpers.pictures import as_png, bars_of, grey_of, groups_of, picture, pixels_of
from tests.helpers.shown import flaws
from vitscope.measures.attention.show import clip_rollout


@pytest.fixture
def table() -> pd.DataFrame:
    """Rollouts of two models for two images, in no order: 3 x 4 and 2 x 2 positions."""
    generator = np.random.default_rng(0)
    vit = {"model": "vit", "of": "class token", "height": 3, "width": 4}
    vit |= {"class_name": "$1 toucan", "confidence": 0.984}
    swin = {"model": "swin", "of": "mean of queries", "height": 2, "width": 2}
    rows = []
    for model in (vit, swin | {"class_name": None, "confidence": None}):
        for image in (7, 2):
            values = generator.uniform(0, 1, model["height"] * model["width"])
            shown = {"image": image, "rollout": values / values.max(), "picture": picture(image)}
            rows.append({**model, **shown, "fusion": "mean"})
    table = pd.DataFrame(rows).assign(on_subject=None, subject=None, whole=None)
    return table.sample(frac=1, random_state=1)


def test_images_rollouts_and_both(table):
    figure: Figure = laid_out("attention_rollout", {"attention_rollout": table}, (VIT, SWIN))
    for (title, panels), member in zip(groups_of(figure), (VIT, SWIN), strict=True):
        rows = table[table["model"] == member.model].sort_values("image")
        assert title == f"{member.label} ({rows['of'].iloc[0]}; heads: mean)"
        assert len(panels) == 2 * 3
        for line, row in zip(zip(*[iter(panels)] * 3, strict=True), rows.itertuples(), strict=True):
            left, middle, right = line
            (image,) = left.images
            np.testing.assert_array_equal(image.get_array(), pixels_of(row.image))
            values = np.minimum(row.rollout / np.quantile(row.rollout, 0.98), 1)
            values = np.reshape(values, (row.height, row.width))
            (alone,) = middle.images
            below, over = right.images
            np.testing.assert_array_equal(below.get_array(), grey_of(row.image))
            for map_ in (alone, over):
                np.testing.assert_allclose(map_.get_array(), values)
                assert map_.get_clim() == (0, 1)
                # As large as the picture, whose pixels are around whole numbers.
                assert [*map_.get_extent()] == [*image.get_extent()] == [-0.5, 7.5, 7.5, -0.5]
                assert map_.get_interpolation() == "nearest"


def test_what_an_image_is_taken_for_stands_above_it(table):
    figure: Figure = laid_out("attention_rollout", {"attention_rollout": table}, (VIT, SWIN))
    (_, vit), (_, swin) = groups_of(figure)
    named, heads = r"\$1 toucan, 98 %", ["rollout", "overlay"]
    assert [axes.get_title() for axes in vit] == [named, *heads, named, "", ""]
    assert [axes.get_title() for axes in swin] == ["", *heads, "", "", ""]
    long = table.assign(class_name="Appenzeller mountain dog of the Alps", confidence=1.0)
    figure = laid_out("attention_rollout", {"attention_rollout": long}, (VIT, SWIN))
    title = groups_of(figure)[0][1][0].get_title()
    assert title == "Appenzeller mountain dog of the Alps\n100 %"
    assert not flaws(figure)


def test_the_image_times_the_rollout(table):
    """As torch enlarges the map, and NumPy multiplies it."""
    tables = {"attention_rollout": table}
    figure: Figure = laid_out("attention_rollout", tables, (VIT, SWIN), product=True, clip=0.0)
    for (_, panels), member in zip(groups_of(figure), (VIT, SWIN), strict=True):
        rows = table[table["model"] == member.model].sort_values("image")
        for axes, row in zip(panels[2::3], rows.itertuples(), strict=True):
            pixels = pixels_of(row.image)
            values = np.reshape(row.rollout, (row.height, row.width))
            plane = torch.from_numpy(values)[None, None]
            large = interpolate(plane, pixels.shape[:2], mode="nearest-exact")[0, 0].numpy()
            (drawn,) = axes.images
            found = drawn.get_array().astype(int)
            assert abs(found - (large[..., None] * pixels)).max() < 1


@pytest.mark.parametrize("clip", [0.02, 0.1])
def test_one_bright_token_leaves_the_others_visible(clip):
    """As of a large network, where one of 196 positions has 50 times what the others have."""
    rollout = np.r_[1.0, np.linspace(0.005, 0.02, 195)]
    shown = clip_rollout(rollout, clip)
    assert shown[0] == 1
    assert (shown == 1).mean() == pytest.approx(clip, abs=1 / 196)
    assert np.median(shown) > 0.5
    np.testing.assert_array_equal(clip_rollout(rollout, 0.0), rollout)


def test_maps_that_are_nearly_all_zero_go_up_to_their_largest():
    assert clip_rollout([0.0] * 99 + [0.5], 0.02).tolist() == [0.0] * 99 + [1.0]
    assert clip_rollout([0.0] * 4, 0.02).tolist() == [0.0] * 4


@pytest.mark.parametrize(("clip", "said"), [(0.02, "98 % quantile"), (0, "largest")])
def test_the_bar_says_where_colours_end(table, clip, said):
    one = table[(table["model"] == "vit") & (table["image"] == 2)]
    discarded = one.assign(fusion="mean, lowest 90 % discarded")
    figure = laid_out("attention_rollout", {"attention_rollout": discarded}, (VIT,), clip=clip)
    ((title, _),) = groups_of(figure)
    assert title == "ViT-Ti (class token; heads: mean, lowest 90 % discarded)"
    (bar,) = bars_of(figure)
    assert said in bar.get_xlabel()
    assert not flaws(figure)


def test_a_model_of_fewer_images_leaves_panels_empty(table):
    one = table[(table["model"] == "vit") | (table["image"] == 2)]
    figure = laid_out("attention_rollout", {"attention_rollout": one}, (VIT, SWIN))
    _, panels = groups_of(figure)[1]
    assert [len(axes.images) for axes in panels] == [1, 1, 2, 0, 0, 0]
    assert not flaws(figure)


def test_a_grey_image_is_shown_grey(table):
    grey = table.assign(picture=[picture(image, grey=True) for image in table["image"]])
    figure = laid_out("attention_rollout", {"attention_rollout": grey}, (VIT,))
    (image,) = groups_of(figure)[0][1][0].images
    assert image.get_array().ndim == 2


def test_the_whole_picture_and_the_shares_of_the_subject(table):
    """One of four images is cut from a larger one, and has a mask."""
    row = (table["model"] == "vit") & (table["image"] == 2)
    pixels = np.random.default_rng(0).integers(0, 256, (8, 14, 3), np.uint8)
    table.loc[row, ["on_subject", "subject", "whole"]] = [0.344, 0.208, as_png(pixels)]
    figure = laid_out("attention_rollout", {"attention_rollout": table}, (VIT, SWIN))
    (_, vit), (_, swin) = groups_of(figure)
    assert [axes.get_title() for axes in vit[:4]] == [
        "whole",
        r"\$1 toucan" "\n98 %",
        "rollout\non mask\n34 %",
        "overlay\nof area\n21 %",
    ]
    assert [axes.get_title() for axes in swin[1:4]] == ["", "rollout", "overlay"]
    assert [len(axes.images) for axes in vit] == [1, 1, 1, 2, 0, 1, 1, 2]
    drawn = vit[0].images[0].get_array()
    np.testing.assert_array_equal(drawn[:, 3:11], pixels[:, 3:11])
    rest = np.delete(drawn, np.s_[3:11], axis=1)
    np.testing.assert_array_equal(rest, 170 + np.delete(pixels, np.s_[3:11], axis=1) // 3)
    assert not flaws(figure)
