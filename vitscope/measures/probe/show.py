from matplotlib.axes import Axes

from vitscope.drawing.charts import Chart, Curve, Layer, Level, Rows
from vitscope.drawing.looks import DIAGONAL, FEW, HOLLOW_POINTS, PROBE_STYLES, REFERENCE
from vitscope.measures.probe.measure import LINEAR, MEAN, NEIGHBOURS, PIXELS, PREFIX, TARGETS, TOKEN


def _on_log_scale(*panels: Axes) -> None:
    for axes in panels:
        axes.set_yscale("log")


_ACCURACIES: tuple[Layer, ...] = (
    Level("network", DIAGONAL, "network itself"),
    Level("chance", REFERENCE, "most frequent class"),
    *(
        Curve("accuracy", label, {"of": of}, PROBE_STYLES[label])
        for of, label in {MEAN: "mean token", PREFIX: "prefix token", TOKEN: "single token"}.items()
    ),
)
plot_probe = Chart(
    Rows("Linear accuracy", *_ACCURACIES, where={"by": LINEAR}, limits=(0, 1)),
    Rows("Neighbours' accuracy", *_ACCURACIES, where={"by": NEIGHBOURS}, limits=(0, 1)),
    bands_of={"of": MEAN},
)

_VECTORS = {MEAN: "mean token", PREFIX: "prefix token"}
plot_class_separation = Chart(
    *(
        Rows(
            said,
            *(
                Curve(column, label, {"of": of}, PROBE_STYLES[label], interval)
                for of, label in _VECTORS.items()
            ),
            limits=limits,
            scale=scale,
            scales="shared",
        )
        for column, said, interval, limits, scale in (
            ("separation", "Class separation", "ci", (0, 1), None),
            ("nc1", "Scatter in classes\n(NC1)", "", None, _on_log_scale),
        )
    ),
    bands_of={"of": MEAN},
)

# The style of outlier curves: outliers are few, so draw them behind the curves of all tokens.
_SMALL = FEW | {"zorder": 2.5}
# The lowest R² that is drawn: that of outlier tokens may be far below zero.
_LOWEST = -0.2


def _from_lowest_to_1(*panels: Axes) -> None:
    for axes in panels:
        axes.set_ylim(max(_LOWEST, min(0, axes.get_ylim()[0])), 1)


plot_probe_tokens = Chart(
    Rows(
        "Share that is read (R²)",
        *(Curve("r2", each, {"target": each}, PROBE_STYLES[each]) for each in TARGETS),
        *(
            Curve(
                "r2_outliers",
                f"{each}, of outliers",
                {"target": each},
                PROBE_STYLES[each] | HOLLOW_POINTS | _SMALL,
                interval="",
                at_least=_LOWEST,
            )
            for each in TARGETS
        ),
        scale=_from_lowest_to_1,
        scales="shared",
    ),
    bands_of={"target": PIXELS},
)
