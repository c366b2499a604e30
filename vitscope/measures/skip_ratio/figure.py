from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator

from vitscope.drawing.charts import Chart, Curve, Level, Rows
from vitscope.drawing.looks import HOLLOW_OF_ALL, OF_ALL, ZERO

_DASHED = {"linestyle": "--"}


def _log_scale(*panels: Axes) -> None:
    for axes in panels:
        axes.set_yscale("log")
        axes.set_ylim(axes.dataLim.y0 / 1.2, 1.2 * axes.dataLim.y1)
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.minorticks_off()


plot_skip_ratio = Chart(
    Rows(
        "Norm of shortcut / branch",
        Curve("ratio", "positions", {"tokens": "positions"}, in_legend=OF_ALL),
        Curve(
            "ratio",
            "class token",
            {"tokens": "class_token"},
            lambda look: look.hollow | _DASHED,
            in_legend=HOLLOW_OF_ALL | _DASHED,
        ),
        Level(1, ZERO | {"zorder": 0.5}),
        scale=_log_scale,
        scales="shared",
    ),
    bands_from=1,
)
