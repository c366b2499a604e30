"""Plot the accuracy at each step of a build-up, measured and published (Fig. 12a of the paper)."""

from collections.abc import Iterator
from fractions import Fraction
from io import BytesIO
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from vitscope.buildup.rule import BASELINE, KEPT, REJECTED
from vitscope.drawing.counts import count_rows
from vitscope.drawing.legends import INTERVAL
from vitscope.drawing.looks import (
    GRAY,
    INTERVAL_BAR,
    REFERENCE,
    SKETCHED,
    STEP,
    THIN,
    depth_color,
)
from vitscope.drawing.notes import write_counts
from vitscope.drawing.panels import Panel, make_panels
from vitscope.errors import VitscopeError
from vitscope.video.frames import Frame

# The paper's network and data set.
SERIES = "AlterNet-50, CIFAR-100"
# Seconds that a video shows each step but the last.
_STEP = Fraction(1)
# Seconds that a video shows the last step.
_END = Fraction(3)
_DPI = 160


def read_buildup_steps(path: Path | str) -> pd.DataFrame:
    """Return the published steps, with the column names of a build-up's table."""
    try:
        points = pd.read_csv(path)
        rows = list(zip(points["branch"], points["msa_number"], points["accuracy"], strict=True))
    except (OSError, UnicodeDecodeError, ValueError, KeyError) as error:
        raise VitscopeError(
            f"Cannot read a published build-up from {path}: name a file of "
            "vitscope/claims/published_points/ with accuracies by number of MSAs."
        ) from error
    steps: list[dict[str, object]] = []
    best, before = float("-inf"), ""
    # Skip the first row of each later stage, which repeats the best network so far.
    for stage, number, percent in rows:
        share = percent / 100
        if not steps:
            steps.append({"stage": None, "msas": number, "accuracy": share, "decision": BASELINE})
        elif stage == before:
            decision = KEPT if share > best else REJECTED
            steps.append({"stage": stage, "msas": number, "accuracy": share, "decision": decision})
        best, before = max(best, share), stage
    return pd.DataFrame(steps)


# The number of stages; each stage has the colour of a depth.
_STAGES = 4
# The minimum width of a panel in inches, so that the names of steps fit side by side.
_LEAST = 2.5


def _stage_color(stage: str) -> str:
    return depth_color((int(stage[1:]) - 1) / (_STAGES - 1)) if stage else GRAY


def _draw_buildup_steps(axes: Axes, steps: pd.DataFrame, title: str, shown: int) -> None:
    """Draw the first `shown` steps, and a line through the kept ones; leave room for all steps."""
    percents, stages = 100 * steps["accuracy"], steps["stage"].fillna("")
    kept = steps["decision"] != REJECTED
    joined = percents[:shown][kept[:shown]]
    axes.axhline(percents.iloc[0], **REFERENCE, zorder=0)
    axes.plot(joined.index, joined, color=GRAY, zorder=1)
    if "ci_low" in steps:
        low, high = 100 * steps["ci_low"], 100 * steps["ci_high"]
        colors = [GRAY if step < shown else "none" for step in steps.index]
        axes.vlines(steps.index, low, high, color=colors, lw=THIN, zorder=2)
    for step, stage, percent, good in zip(steps.index, stages, percents, kept, strict=True):
        color = _stage_color(stage)
        face, look = color if good else "white", {**STEP, "color": color, "visible": step < shown}
        axes.plot(step, percent, **look, markerfacecolor=face, zorder=3)
    axes.set_title(title)
    msas = zip(stages, steps["msas"], strict=True)
    names = [f"{stage or 'none'} ({count})" for stage, count in msas]
    axes.set_xticks(steps.index, names, rotation=45, ha="right", rotation_mode="anchor")
    axes.margins(x=0.06, y=0.1)


def sketch_buildup(panel: Panel) -> None:
    """Draw the accuracy of each step in a small panel; hollow markers show rejected steps."""
    axes, points, look = panel.axes, panel.rows, panel.look
    percent = 100 * points["accuracy"].reset_index(drop=True)
    kept = (points["decision"] != REJECTED).to_numpy()
    axes.plot(percent.index[kept], percent[kept], **look.curve | SKETCHED)
    axes.plot(percent.index[~kept], percent[~kept], **look.hollow | SKETCHED, linestyle="")
    axes.set(xlabel="Step", ylabel="Accuracy (%)")


def plot_buildup(
    table: pd.DataFrame,
    label: str,
    published: pd.DataFrame | None = None,
    *,
    shown: int | None = None,
) -> Figure:
    """Draw the first `shown` steps of a build-up (default: all), beside the published steps."""
    panels = make_panels(1 if published is None else 2, least=_LEAST)
    panels.resize(height=2.6 * len(panels.axes) / panels.columns)
    steps = table.sort_values("step", ignore_index=True)
    _draw_buildup_steps(panels.axes[0], steps, f"from {label}, measured", shown or len(steps))
    if published is not None:
        _draw_buildup_steps(
            panels.axes[1], published, f"published: {SERIES}", shown or len(published)
        )
    for axes in panels.axes:
        axes.set(xlabel="Stage that got an MSA (MSAs so far)", ylabel="Accuracy (%)")
    count_rows(steps, panels.axes[0])
    write_counts(panels.figure, steps)
    legend = panels.legend
    for color in (_stage_color(f"c{stage}") for stage in range(1, _STAGES + 1)):
        legend.add_marker("kept", {**STEP, "color": color}, color)
        legend.add_marker("rejected", {**STEP, "color": color, "markerfacecolor": "white"}, color)
    legend.add_line("baseline", {"marker": "o", **REFERENCE})
    legend.add_marker(INTERVAL, {**INTERVAL_BAR, "color": GRAY})
    legend.draw(panels.figure, None if panels.whole else panels.axes[0])
    return panels.figure


def animate_buildup(
    table: pd.DataFrame, label: str, published: pd.DataFrame | None = None
) -> Iterator[Frame]:
    """Yield the figure step by step as frames of a video."""
    last = max(len(table), 0 if published is None else len(published))
    for shown in range(1, last + 1):
        drawn = BytesIO()
        plot_buildup(table, label, published, shown=shown).savefig(drawn, format="png", dpi=_DPI)
        yield Frame(Image.open(drawn).convert("RGB"), _STEP if shown < last else _END)
