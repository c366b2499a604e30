import numpy as np
import pandas as pd
import pytest

from tests.helpers.drawing import RESNET, VIT, laid_out
from tests.helpers.pictures import bars_of, grey_of, groups_of, picture, pixels_of
from tests.helpers.shown import flaws, legend_labels
from vitscope.drawing.looks import MOST_OPAQUE

PLACES = {"grad_cam": (2, 2), "layer_cam": (2, 2), "gradient_rollout": (3, 4), "rollout": (3, 4)}


@pytest.fixture
def maps() -> pd.DataFrame:
    """Maps of two models for two images, in no order; one has no rollouts."""
    generator = np.random.default_rng(0)
    rows = []
    for model, image in ((model, image) for model in ("vit", "resnet") for image in (7, 2)):
        for method, (height, width) in PLACES.items():
            shown = {"model": model, "image": image, "class_name": f"toucan {image}"}
            shown |= {"picture": picture(image), "confidence": 0.984, "method": method}
            shown |= {"height": height, "width": width}
            shown["of"] = "layer4.1" if method.endswith("_cam") else "class token"
            rows.append({**shown, "values": generator.uniform(0, 1, height * width)})
    table = pd.DataFrame(rows)
    has_it = (table["model"] == "vit") | table["method"].str.endswith("_cam")
    return table[has_it].sample(frac=1, random_state=1)


def test_maps_of_all_methods_lie_over_their_image(maps):
    figure = laid_out("class_maps", {"class_maps": maps}, (VIT, RESNET))
    cams = ["Grad-CAM", "LayerCAM"]
    named = {"vit": [*cams, "gradient rollout", "rollout"], "resnet": cams}
    for (title, panels), member in zip(groups_of(figure), (VIT, RESNET), strict=True):
        assert title == f"{member.label} (CAMs of layer4.1)"
        methods = [*PLACES][: len(named[member.model])]
        rows = maps[maps["model"] == member.model].set_index(["image", "method"])
        lines = np.reshape(np.array(panels), (2, 1 + len(methods)))
        # The first row has less room, as it has titles.
        for line, image, apart, names in zip(
            lines, (2, 7), ("", ","), (named[member.model], [""] * len(methods)), strict=True
        ):
            (alone,) = line[0].images
            np.testing.assert_array_equal(alone.get_array(), pixels_of(image))
            assert line[0].get_title().replace("\n", " ") == f"toucan {image}{apart} 98 %"
            assert [axes.get_title().replace("\n", " ") for axes in line[1:]] == names
            for axes, method in zip(line[1:], methods, strict=True):
                below, over = axes.images
                np.testing.assert_array_equal(below.get_array(), grey_of(image))
                values = np.reshape(rows.loc[(image, method), "values"], PLACES[method])
                np.testing.assert_array_equal(over.get_array(), values)
                assert over.get_clim() == (0, 1)
                assert over.get_interpolation() == "nearest"
    (bar,) = bars_of(figure)
    assert bar.get_xlabel() == "Value of a map, over its largest value"
    assert not flaws(figure)


def test_a_map_covers_its_picture_only_where_it_is_high(maps):
    """Where a map is 0, the picture is as it is; where it is 1, its colour is that of the bar."""
    figure = laid_out("class_maps", {"class_maps": maps}, (VIT, RESNET))
    _, over = groups_of(figure)[0][1][1].images
    low, middle, high = over.to_rgba(np.array([0.0, 0.5, 1.0]))[:, 3]
    assert (low, middle, high) == pytest.approx((0, MOST_OPAQUE / 2, MOST_OPAQUE), abs=0.01)


def test_networks_without_attention_have_no_empty_columns(maps):
    figure = laid_out("class_maps", {"class_maps": maps[maps["model"] == "resnet"]}, (RESNET,))
    ((_, panels),) = groups_of(figure)
    assert len(panels) == 6


METHODS = {
    "grad_cam": "Grad-CAM",
    "layer_cam": "LayerCAM",
    "gradient_rollout": "gradient rollout",
    "rollout": "rollout",
    "random": "random map",
}


@pytest.mark.parametrize(("kind", "change"), [("deletion", "deleted"), ("insertion", "inserted")])
def test_a_dot_for_every_method_is_its_area_with_an_interval(kind, change):
    # Curves of two models, in no order; one has no rollouts.
    rows = [
        {"model": model, "method": method, "change": change, "share": share}
        for model in ("resnet", "vit")
        for method in METHODS
        for change in ("deleted", "inserted")
        for share in (0, 0.25, 0.5, 1)
        if model == "vit" or "rollout" not in method
    ]
    table = pd.DataFrame(rows)
    keys = table.groupby(["model", "method", "change"], sort=False).ngroup()
    areas = np.random.default_rng(0).uniform(0.2, 0.8, keys.max() + 1)[keys]
    table = table.assign(area=areas, area_low=areas - 0.1, area_high=areas + 0.15, images=20)
    shown = table.sample(frac=1, random_state=1)
    figure = laid_out(kind, {"faithfulness": shown}, (VIT, RESNET))
    drawn = table[table["change"] == change].drop_duplicates(["model", "method"])
    for axes, member in zip(figure.axes, (VIT, RESNET), strict=True):
        of_model = drawn[drawn["model"] == member.model].set_index("method")
        places = [height for height, name in enumerate(METHODS) if name in of_model.index]
        *dots, random = axes.lines
        bars = [line.get_segments()[0] for line in axes.collections]
        for dot, bar, height in zip(dots, bars, places, strict=True):
            row = 100 * of_model.loc[[*METHODS][height], ["area_low", "area", "area_high"]]
            assert (dot.get_xdata()[0], dot.get_ydata()[0]) == pytest.approx((row["area"], height))
            ends = [(row["area_low"], height), (row["area_high"], height)]
            np.testing.assert_allclose(bar.astype(float), np.array(ends, float))
        assert random.get_xdata()[0] == pytest.approx(100 * of_model.loc["random", "area"])
        # All panels have one scale.
        assert axes.get_xlim() == (0, pytest.approx(105 * drawn["area_high"].max()))
    named = [each.get_text() for each in figure.axes[0].get_yticklabels()]
    assert named == [*METHODS.values()]
    across = " ".join(figure.axes[0].get_xlabel().split())
    assert across == f"Mean probability of the class, pixels {change} (%)"
    assert legend_labels(figure) == ["random map", "95 % interval"]
    assert not flaws(figure)
