import numpy as np
import pandas as pd
import pytest

from tests.helpers.drawing import RESNET, VIT, drawn_from
from tests.helpers.shown import legend_labels

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
