import numpy as np
import pandas as pd

from tests.helpers.drawing import RESNET, VIT, drawn_from
from tests.helpers.shown import legend_labels

BOTH = (VIT, RESNET)


def curves(axes) -> dict[str, np.ndarray]:
    return {line.get_marker(): line.get_xydata() for line in axes.lines}


def test_accuracy_by_depth(table: pd.DataFrame) -> None:
    # Accuracies that grow with depth; the ViT alone has prefix tokens and classes.
    tables = []
    for step, (of, by) in enumerate(
        (of, by) for of in ("mean", "prefix", "token") for by in ("linear", "neighbours")
    ):
        value = table["depth"] / 2 + step / 20
        found = table.assign(of=of, by=by, accuracy=value, ci_low=value - 0.1, ci_high=value + 0.1)
        tables.append(found[(of != "prefix") | (found["model"] == VIT.model)])
    both = pd.concat(tables)
    network = np.where(both["model"] == VIT.model, 0.9, np.nan)
    accuracies = both.assign(chance=0.2, network=network)
    figure = drawn_from("probe", {"probe": accuracies}, BOTH)
    for place, axes in enumerate(figure.axes):
        member, by = BOTH[place % 2], ("linear", "neighbours")[place // 2]
        shown = accuracies[(accuracies["model"] == member.model) & (accuracies["by"] == by)]
        markers = {"mean": "o", "prefix": "s", "token": "^"}
        found = curves(axes)
        for of, rows in shown.groupby("of"):
            expected = rows.sort_values("index")[["depth", "accuracy"]]
            np.testing.assert_array_equal(found.pop(markers[of]), expected)
        levels = sorted(line.get_ydata()[0] for line in axes.lines if line.get_marker() == "None")
        assert levels == ([0.2, 0.9] if member is VIT else [0.2])
        assert axes.get_ylim() == (0, 1)
        assert found.keys() <= {"None"}
    assert legend_labels(figure)[:5] == [
        "network itself", "most frequent class", "mean token", "prefix token", "single token",
    ]  # fmt: skip


def test_what_tokens_know_by_depth(table) -> None:
    found = [
        table.assign(target=target, r2=value, ci_low=value - 0.1, ci_high=value + 0.1)
        for target, value in (("position", 0.8 * table["depth"]), ("pixels", 1 - table["depth"]))
    ]
    outliers = np.where(table["model"] == RESNET.model, table["depth"] - 0.6, np.nan)
    both = pd.concat([each.assign(r2_outliers=outliers) for each in found])
    vit, resnet = drawn_from("probe_tokens", {"probe_tokens": both}, BOTH).axes
    assert [len(axes.lines) for axes in (vit, resnet)] == [2, 4]
    assert vit.get_ylim()[1] == resnet.get_ylim()[1] == 1
    assert resnet.get_ylim()[0] == -0.2
    # What is far below nothing stands at the lower edge.
    np.testing.assert_array_equal(
        resnet.lines[2].get_ydata(), np.maximum(np.arange(17) / 16 - 0.6, -0.2)
    )
    assert resnet.lines[2].get_linestyle() == "None"
    rows = both[(both["model"] == VIT.model) & (both["target"] == "pixels")].sort_values("index")
    np.testing.assert_array_equal(curves(vit)["s"], rows[["depth", "r2"]])
