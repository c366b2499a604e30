from itertools import product

import numpy as np
import pandas as pd

from tests.helpers.drawing import SWIN, VIT, laid_out
from tests.helpers.shown import flaws


def test_four_losses():
    rows = []
    conditions = product(("vit", "swin"), (False, True), (False, True), (0, 1))
    for number, (model, clean, l2, batch) in enumerate(conditions):
        fixed = {"model": model, "clean": clean, "l2": l2, "batch": batch, "weight_decay": 0.05}
        for x in (-0.5, 0.0, 0.5):
            rows.append({**fixed, "of": "slice", "x": x, "value": 2 + (number + 1) * x**2})
        for x in (-3.0, 0.01, 200.0):
            rows.append({**fixed, "of": "spectrum", "x": x + 0.05 * l2, "value": 1 / 3})
    table = pd.DataFrame(rows).sample(frac=1, random_state=0)
    figure = laid_out("loss_terms", {"loss_terms": table}, (VIT, SWIN))
    upper = [axes for axes in figure.axes if axes.get_title()]
    lower = [axes for axes in figure.axes if not axes.get_title()]
    shown = product(("ViT-Ti", "Swin-Ti"), ("augmented", "clean"))
    titles = [f"{label}\non {what} images" for label, what in shown]
    assert [axes.get_title() for axes in upper] == titles
    # The line with L2 comes first; lines are means of two batches.
    changes = [line.get_ydata()[0] for axes in upper for line in axes.lines]
    assert changes == [
        (4 * pair + 2 * l2 + 1.5) * 0.25 for pair in range(4) for l2 in (True, False)
    ]
    for axes in lower:
        with_l2, without = axes.lines[:2]
        order = np.argsort(without.get_xdata())
        assert np.array(without.get_xdata())[order].tolist() == [-3, -3, 0.01, 0.01, 200, 200]
        shift = np.sort(with_l2.get_xdata()) - np.sort(without.get_xdata())
        np.testing.assert_allclose(shift, 0.05)
        np.testing.assert_allclose(without.get_ydata(), 1 / 6)
        assert axes.get_xlim() == (-2 * 200.05, 2 * 200.05)
        assert [*axes.get_xticks()] == [-100, -1, 0, 1, 100]
    assert {axes.get_ylim() for axes in upper} == {upper[0].get_ylim()}
    assert not flaws(figure)
