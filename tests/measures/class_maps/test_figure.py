import numpy as np
import pandas as pd
import pytest

from tests.helpers.drawing import RESNET, VIT, drawn_from, laid_out
from tests.helpers.overlays import bars_of, grey_of, groups_of, picture, pixels_of
from tests.helpers.shown import flaws, legend_labels
from vitscope.drawing.looks import MOST_OPAQUE

PLACES = {"grad_cam": (2, 2), "gradient_rollout": (3, 4), "rollout": (3, 4)}


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
            shown["of"] = "layer4.1" if method == "grad_cam" else "class token"
            rows.append({**shown, "values": generator.uniform(0, 1, height * width)})
    table = pd.DataFrame(rows)
    has_it = (table["model"] == "vit") | (table["method"] == "grad_cam")
    return table[has_it].sample(frac=1, random_state=1)


def test_maps_of_all_methods_lie_over_their_image(maps):
    figure = laid_out("class_maps", {"class_maps": maps}, (VIT, RESNET))
    named = {"vit": ["Grad-CAM", "gradient rollout", "rollout"], "resnet": ["Grad-CAM"]}
    for (title, panels), member in zip(groups_of(figure), (VIT, RESNET), strict=True):
        assert title == f"{member.label} (Grad-CAM of layer4.1)"
        methods = [*PLACES][: len(named[member.model])]
        rows = maps[maps["model"] == member.model].set_index(["image", "method"])
        lines = np.reshape(np.array(panels), (2, 1 + len(methods)))
        for line, image, names in zip(
            lines, (2, 7), (named[member.model], [""] * len(methods)), strict=True
        ):
            (alone,) = line[0].images
            np.testing.assert_array_equal(alone.get_array(), pixels_of(image))
            assert line[0].get_title().replace("\n", " ") == f"toucan {image}, 98 %"
            assert [axes.get_title() for axes in line[1:]] == names
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
    assert len(panels) == 4


METHODS = {
    "grad_cam": "Grad-CAM",
    "gradient_rollout": "gradient rollout",
    "rollout": "rollout",
    "random": "random map",
}


@pytest.mark.parametrize(("kind", "change"), [("deletion", "deleted"), ("insertion", "inserted")])
def test_panels_show_a_curve_for_every_method(kind, change):
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
    table["probability"] = np.random.default_rng(0).uniform(0.2, 0.8, len(table))
    table = table.assign(ci_low=table["probability"] - 0.1, ci_high=table["probability"] + 0.1)
    curves = table.sample(frac=1, random_state=1)
    figure = drawn_from(kind, {"faithfulness": curves}, (VIT, RESNET))
    for axes, model in zip(figure.axes, ["vit", "resnet"], strict=True):
        rows = curves[(curves["model"] == model) & (curves["change"] == change)]
        there = [method for method in METHODS if method in {*rows["method"]}]
        assert len(axes.lines) == len(there)
        for line, method in zip(axes.lines, there, strict=True):
            expected = rows[rows["method"] == method].sort_values("share")
            np.testing.assert_allclose(line.get_xdata(), 100 * expected["share"])
            np.testing.assert_allclose(line.get_ydata(), 100 * expected["probability"])
        assert (axes.get_xlim(), axes.get_ylim()) == ((0, 100), (0, 100))
    assert figure.axes[0].get_xlabel() == f"Pixels {change} (%)"
    assert {*METHODS.values()} <= {*legend_labels(figure)}
