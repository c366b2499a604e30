"""The colours of tokens, against scikit-learn and what was planted."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from matplotlib.figure import Figure
from sklearn.decomposition import PCA

from tests.helpers.networks import every_mini, mini, mini_blocks
from tests.helpers.pictures import as_png
from tests.helpers.splits import built, on_model
from vitscope.data.split import Split
from vitscope.drawing.figure import Member
from vitscope.errors import VitscopeError
from vitscope.measures.shown import on_subject
from vitscope.measures.tokens.measure import TokenPcaSettings
from vitscope.measures.tokens.pca import Components, PcaBasis, measure_token_pca
from vitscope.measures.tokens.show_pca import pca_colours_of, plot_token_pca
from vitscope.networks.finding.capture import capturing

Array = npt.NDArray[Any]
SETTINGS = TokenPcaSettings()
# Which positions of each map of 9 x 7 have an object, and which is an outlier.
OBJECTS = [(slice(2, 7), slice(1, 5)), (slice(1, 8), slice(2, 6)), (slice(3, 6), slice(2, 5))]
OUTLIERS = [(0, 3), (4, 3)]


def planted() -> tuple[Array, Array]:
    """Return maps (3, 12, 9, 7) of objects before a background, and where the objects are."""
    rng = np.random.default_rng(0)
    maps = rng.standard_normal((3, 12, 9, 7))
    there = np.zeros((3, 9, 7), bool)
    for image, place in enumerate(OBJECTS):
        there[(image, *place)] = True
    direction = rng.standard_normal(12)
    maps += 4 * direction[:, None, None] * np.where(there, 1, -1)[:, None]
    return maps, there


def by_scikit_learn(tokens: Array, count: int) -> tuple[Array, Array]:
    """Return components, whose largest loading is positive in scikit-learn, too, and shares."""
    fitted = PCA(count, svd_solver="full").fit(tokens)
    return fitted.transform(tokens), fitted.explained_variance_ratio_


@pytest.mark.parametrize("shape", [(50, 12), (20, 64), (4, 3)])
def test_components_are_those_of_scikit_learn(shape: tuple[int, int]) -> None:
    tokens = np.random.default_rng(1).standard_normal(shape) * np.arange(1, shape[1] + 1) + 5
    components, shares = by_scikit_learn(tokens, 3)
    found = PcaBasis.of(tokens, 3)
    np.testing.assert_allclose(found.project(tokens), components, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.explained, shares, rtol=0, atol=1e-9)


def test_components_that_do_not_exist_are_zero() -> None:
    tokens = np.array([[1.0, 0], [3, 0]])
    found = PcaBasis.of(tokens, 3)
    np.testing.assert_allclose(found.project(tokens), [[-1, 0, 0], [1, 0, 0]], rtol=0, atol=1e-15)
    np.testing.assert_allclose(found.explained, [1, 0, 0], rtol=0, atol=1e-15)
    same = np.ones((4, 2))
    assert not PcaBasis.of(same, 3).project(same).any()


@pytest.mark.parametrize("sign", [1, -1])
def test_the_foreground_is_what_was_planted_with_components_of_its_own(sign: int) -> None:
    maps, there = planted()
    maps *= sign
    maps[0][:, *OUTLIERS[0]] *= 40
    maps[1][:, *OUTLIERS[1]] *= 40
    components = Components.of(maps, SETTINGS)
    found = components.split(maps)

    left_out = np.zeros_like(there)
    left_out[0][OUTLIERS[0]] = left_out[1][OUTLIERS[1]] = True
    np.testing.assert_array_equal(found["outliers"], left_out.reshape(3, -1))
    foreground = (there & ~left_out).reshape(3, -1)
    np.testing.assert_array_equal(found["foreground"], foreground)

    tokens = maps.transpose(0, 2, 3, 1).reshape(3, -1, 12)
    first, _ = by_scikit_learn(tokens[~found["outliers"]], 1)
    ours = found["first"][~found["outliers"]]
    np.testing.assert_allclose(np.abs(ours), np.abs(first[:, 0]), rtol=0, atol=1e-9)
    assert np.isnan(found["first"][found["outliers"]]).all()

    expected, shares = by_scikit_learn(tokens[foreground], 3)
    np.testing.assert_allclose(found["components"][foreground], expected, rtol=0, atol=1e-9)
    np.testing.assert_allclose(components.of_foreground.explained, shares, rtol=0, atol=1e-12)
    assert np.isnan(found["components"][~foreground]).all()


def test_without_a_foreground_all_tokens_are_in_it() -> None:
    maps, _ = planted()
    found = Components.of(maps, TokenPcaSettings(foreground=False)).split(maps)
    expected, _ = by_scikit_learn(maps.transpose(0, 2, 3, 1).reshape(-1, 12), 3)
    np.testing.assert_allclose(found["components"].reshape(-1, 3), expected, rtol=0, atol=1e-9)


def test_maps_without_differences_have_no_foreground() -> None:
    maps = np.ones((2, 5, 4, 4))
    components = Components.of(maps, SETTINGS)
    assert not components.split(maps)["foreground"].any()
    assert not components.of_foreground.explained.any()


def test_of_the_subject_the_foreground_covers_a_share() -> None:
    mask = np.zeros((8, 8), np.uint8)
    mask[:, :3] = 1
    foreground = np.array([[True, False], [True, False]]).ravel()
    assert on_subject(foreground, (2, 2), mask) == {"on_subject": 0.75, "subject": 0.375}
    assert on_subject(foreground, (2, 2), None) == {"on_subject": None, "subject": None}


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Split:
    return built(tmp_path_factory.mktemp("split") / "file", {"kind": "shapes32"}, images=4)


def measured(name: str, images: Split, **settings: Any) -> pd.DataFrame:
    network, points = mini(name)
    given = on_model(network, images, cut_points=points, blocks=mini_blocks(name).table)
    chosen = {"shown": 3, "images": 4, "seed": None}
    return measure_token_pca(given, TokenPcaSettings(**settings), chosen)


@every_mini
def test_any_network_is_read_at_its_last_map_of_several_positions(name: str, images: Split) -> None:
    table, blocks = measured(name, images), mini_blocks(name).table
    last = blocks[blocks["height"] * blocks["width"] > 1].iloc[-1]
    assert {*table["of"]} == {last["name"]}
    assert {*map(len, table["first"])} == {last["height"] * last["width"]}
    assert table["image"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("point", [3, -2, "blocks.2.attn"])
def test_the_components_are_those_of_the_maps_at_the_cut_point(
    point: int | str, images: Split
) -> None:
    network, points = mini("vit")
    names = [each.name for each in points]
    number = names.index(point) if isinstance(point, str) else range(len(points))[point]
    maps = []
    with capturing(network, [points[number]], lambda _, found: maps.append(found.clone())):
        network(images.normalize([0, 1, 2], [0.5] * 3, [0.25] * 3))
    tokens = maps[0].detach().double().permute(0, 2, 3, 1).flatten(0, 2).numpy()
    expected, _ = by_scikit_learn(tokens, 3)
    found = measured("vit", images, cut_point=point, foreground=False, outliers=1e9)
    assert {*found["of"]} == {names[number]}
    components = np.reshape([*found["components"]], (-1, 3))
    np.testing.assert_allclose(components, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("point", [99, -99, "blocks.2.atn"])
def test_a_cut_point_that_is_not_there_is_refused(point: int | str, images: Split) -> None:
    with pytest.raises(VitscopeError, match=r"analysis\.token_pca\.cut_point: found .*, allowed"):
        measured("vit", images, cut_point=point)


def row(**values: Any) -> dict[str, Any]:
    shared = {"model": "vit", "of": "last", "height": 1, "width": 2, "explained": [0.5, 0.2, 0.1]}
    return {**shared, "picture": as_png(np.full((8, 8, 3), 200, np.uint8)), **values}


NAN = [np.nan] * 3
TABLE = pd.DataFrame(
    [
        row(image=0, first=[1.0, -1.0], components=[0.0, 0, 4, *NAN]),
        row(image=1, first=[2.0, np.nan], components=[2.0, 1, 2, *NAN]),
    ]
)


def test_colours_reach_from_the_smallest_to_the_largest_value_of_all_images() -> None:
    one, other = pca_colours_of(TABLE)
    np.testing.assert_array_equal(one, [[[0, 0, 1, 1], [0, 0, 0, 0]]])
    np.testing.assert_array_equal(other, [[[1, 1, 0, 1], [0, 0, 0, 0]]])


def test_images_stand_above_their_colours_and_outliers_are_grey() -> None:
    figure: Figure = plot_token_pca(TABLE, [Member("vit", "ViT", "vit")])
    panels = [axes for axes in figure.axes if axes.images]
    assert len(panels) == 4
    grey, colours = panels[3].images
    np.testing.assert_array_equal(grey.get_array()[..., 3], [[0, 1]])
    np.testing.assert_array_equal(colours.get_array()[..., 3], [[1, 0]])
    (title,) = [part.get_suptitle() for part in figure.subfigs[:1]]
    assert title == "ViT (last; 80 % of the variance)"
