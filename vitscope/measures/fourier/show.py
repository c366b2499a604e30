from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MultipleLocator

from vitscope.claims.chance import known_share_interval
from vitscope.claims.claim import (
    AVERAGED,
    OTHER_MIXING,
    SPECIFIC,
    Claim,
    Evidence,
    ScoredCurve,
    attention_against_fixed_weights,
    averaging,
    convolutional,
    every_model,
    with_subsampling,
)
from vitscope.claims.points import AllPublished, Points
from vitscope.claims.statistics import falls, falls_more, lower_at_cut_points, rises, share
from vitscope.drawing.axes import begin_at_zero, depth_bar, in_percent, share_scale
from vitscope.drawing.charts import Across, Chart, Curve, Rows, Theirs
from vitscope.drawing.figure import Members, rows_of
from vitscope.drawing.looks import DIAGONAL, FREQUENCY_BANDS, curve_of_depth
from vitscope.drawing.panels import make_panels, stack_panels
from vitscope.files.arrays import Array

AMPLITUDE = "Δ log amplitude"
COMPONENT = "Δ log amplitude at 1.0π"
# Inches: a panel beside others on the same scale.
_LEAST = 1.05
# A bin of confidence with fewer images says nothing and gets no point.
_FEWEST = 10
_COLUMN = "delta_log_amplitude"
_ENDS = Curve(_COLUMN)
_BY_DEPTH = Chart(Rows(COMPONENT, Theirs(_COLUMN, AMPLITUDE), _ENDS))
_ORDER = ["index", "frequency"]


def curves_of(table: pd.DataFrame) -> pd.DataFrame:
    """Return the curves along the half-diagonal, in the order of cut points and frequencies."""
    return table[table["measure"] == "diagonal"].sort_values(_ORDER, ignore_index=True)


def ends_of(curves: pd.DataFrame) -> pd.DataFrame:
    """Return the point at 1.0 pi of each cut point, with null values if it has none."""
    ends = curves.groupby("index").tail(1).reset_index(drop=True)
    values = ends.columns.intersection([_COLUMN, "ci_low", "ci_high"])
    return ends.assign(**ends[values].where(ends["frequency"] > 0))


def draw_curves(axes: Axes, curves: pd.DataFrame) -> None:
    """Draw the curve of each cut point, if it has one, in the colour of its depth."""
    for _, curve in curves.groupby("index"):
        if len(curve) > 1:
            style = curve_of_depth(curve["depth"].iloc[0])
            axes.plot(curve["frequency"], curve[_COLUMN], **style)
    if not axes.lines:
        axes.text(0.5, 0.5, "undefined for these maps", ha="center", transform=axes.transAxes)
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_locator(FixedLocator([0, 0.5, 1]))
    axes.xaxis.set_minor_locator(MultipleLocator(0.1))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.1f}π"))


def plot_fourier(table: pd.DataFrame, members: Members) -> Figure:
    """Draw two panels per model: its curves, and below them their values at 1.0 pi by depth."""
    upper, lower = stack_panels(len(members), 2, _LEAST)
    for panel in upper.of_models(members, curves_of(table), _ORDER):
        draw_curves(panel.axes, panel.rows)
    ends = ends_of_each(table, members)
    for panel in lower.of_models(members, ends, ["index"]):
        panel.draw_bands(panel.rows)
        _ENDS.draw(panel, Across())
    depth_bar(upper.axes)
    upper.label("Frequency", AMPLITUDE, "shared")
    return lower.finish("Normalized depth", COMPONENT, "shared")


def plot_fourier_curves(table: pd.DataFrame, members: Members, published: AllPublished) -> Figure:
    """Draw one panel per model, and below it, if there are any, one of the published curves."""
    rows = stack_panels(len(members), 2 if published else 1)
    for panel in rows[0].of_models(members, curves_of(table), _ORDER):
        draw_curves(panel.axes, panel.rows)
    drawn = list(rows[0].axes)
    below = rows[1].axes if published else ()
    for above, axes, member in zip(rows[0].axes, below, members, strict=bool(published)):
        theirs = published.get(member.model)
        if theirs is None:
            axes.remove()
            continue
        points = theirs.points
        draw_curves(axes, points.assign(depth=points["index"] / points["index"].max()))
        same = "" if theirs.same_model else "\n(another model)"
        axes.set_title(f"Published: {theirs.series}{same}")
        share_scale([above, axes])
        drawn.append(axes)
    depth_bar(drawn)
    for row in rows:
        row.label("Frequency", AMPLITUDE, "own")
    return rows[0].figure


def plot_fourier_depth(table: pd.DataFrame, members: Members, published: AllPublished) -> Figure:
    """Draw one panel per model: the log amplitude at 1.0 pi, relative to that at 0, by depth."""
    ends = ends_of_each(table, members)
    return _BY_DEPTH(ends, members=members, published=published)


def plot_averaging(
    fourier: pd.DataFrame, variance: pd.DataFrame, reliability: pd.DataFrame, members: Members
) -> Figure:
    """Draw all models in each of three panels: variance and component by depth, and reliability."""
    panels = make_panels(3)
    legend = panels.legend
    legend.add_models(members)
    component = ends_of_each(fourier, members)
    filled = reliability[reliability["images"] >= _FEWEST]
    counts = zip(filled["accuracy"], filled["images"].astype(int), strict=True)
    ends = np.reshape([known_share_interval(*each) for each in counts], (-1, 2))
    filled = filled.assign(ci_low=ends[:, 0], ci_high=ends[:, 1])
    drawn = (
        (variance, "depth", "variance", "Normalized depth", "Feature map variance"),
        (component, "depth", _COLUMN, "Normalized depth", COMPONENT),
        (filled, "confidence", "accuracy", "Mean confidence", "Accuracy"),
    )
    for axes, (table, x, y, below, beside) in zip(panels.axes, drawn, strict=True):
        for panel in replace(panels, axes=[axes]).of_models_together(members, table, [x]):
            Curve(y).draw(panel, Across(x))
        axes.set(xlabel=below, ylabel=beside, xlim=(0, 1))
    begin_at_zero(panels.axes[0])
    panels.axes[2].plot([0, 1], [0, 1], **DIAGONAL)
    panels.axes[2].set_ylim(0, 1)
    legend.add_line("calibrated", DIAGONAL)
    legend.draw(panels.figure)
    return panels.figure


def ends_of_each(table: pd.DataFrame, members: Members) -> pd.DataFrame:
    """Return the points at 1.0 pi of all cut points of models."""
    curves = curves_of(table)
    return pd.concat(ends_of(rows_of(curves, member.model)) for member in members)


def plot_spectrum(table: pd.DataFrame, members: Members) -> Figure:
    """Draw one panel per model: what share of the variance each band has, by normalized depth."""
    limits = table.drop_duplicates("band").set_index("band")
    begin, end = (f"{edge:g}π" for edge in limits.loc["middle", ["above", "up_to"]])
    ends = {"low": f"up to {begin}", "middle": f"{begin} to {end}", "high": f"above {end}"}
    shares = (
        Curve("share", f"{band}: {ends[band]}", {"band": band}, style)
        for band, style in FREQUENCY_BANDS.items()
    )
    rows = Rows("Share of the variance", *shares, limits=(0, 1), scale=in_percent)
    return Chart(rows, bands_of={"band": "low"})(table, members=members)


_WHAT = (
    "The high-frequency component is the log amplitude at the highest frequency of the diagonal "
    "minus the log amplitude at frequency 0."
)
_WHY = (
    f"The paper's Fig. 8 and D.2. {_WHAT} The claim that subsampling raises it comes from the "
    "ResNet of Fig. 2a."
)


# What is claimed of each kind of blocks, in names and in words, and what counts for it.
_OF_BLOCKS = (
    ("msa", "reduces", "MSAs reduce", falls),
    ("conv", "increases", "Convs that do not subsample increase", rises),
    ("mlp", "increases", "MLPs increase", rises),
)


@dataclass(frozen=True)
class MapValue:
    """A value of feature maps that claims are about: its column, its name in claims, and in words.

    Each measure that claims what blocks do to a value claims it in these words.
    """

    column: str
    name: str
    words: str

    def of_blocks(self, source: str, why: str) -> tuple[Claim, ...]:
        """Claim that MSAs reduce it, and that Convs and MLPs increase it."""
        return tuple(
            Claim(
                f"{kind}_{does}_{self.name}",
                f"{blocks_do} the {self.words}",
                source,
                every_model,
                counted(kind, self.column, self.words),
                why,
            )
            for kind, does, blocks_do, counted in _OF_BLOCKS
        )

    def of_attention(self, source: str, why: str, log: bool = False) -> Claim:
        """Claim that MSAs reduce it more than other mixing does, with `log` as a ratio."""
        return Claim(
            f"msa_reduces_{self.name}_more",
            f"MSAs reduce the {self.words} more than {OTHER_MIXING}",
            source,
            attention_against_fixed_weights,
            falls_more("msa", self.column, self.words, log),
            why,
        )

    def of_averaging(self, found: str) -> Claim:
        """Claim that averaging reduces it; `found` says what others found averages to do."""
        return Claim(
            f"averaging_reduces_{self.name}",
            f"Averaging reduces the {self.words}",
            "Park and Kim 2022",
            averaging,
            lower_at_cut_points(self.column, self.words),
            AVERAGED.format(found),
        )


_VALUE = MapValue(_COLUMN, "high_frequency", "high-frequency component")


def _rises_between(curves: Points) -> Array:
    last = curves.frame["index"].duplicated(keep="last")
    components = curves.where(~last & (curves.frame["frequency"] > 0))[_COLUMN]
    first, second = np.triu_indices(components.shape[1], k=1)
    return np.subtract(components[:, second], components[:, first])


def _falls_at_ends(points: Points) -> Array:
    ends = points.frame["subsampling"].shift(-1, fill_value=True)
    chosen = ends & (points.frame["kind"] == "conv") & ~points.frame["subsampling"]
    return np.negative(np.diff(points[_COLUMN], axis=1)[:, chosen.to_numpy()[1:]])


CLAIMS_FOURIER_CURVES = Evidence(
    "fourier",
    (
        Claim(
            "conv_model_raises_high_frequency",
            "The high-frequency component of a convolutional model rises with depth",
            "Fig. 2a",
            convolutional,
            share(
                "share of pairs of cut points",
                "All pairs of cut points count: one is in favour if the deeper cut point has the "
                "larger high-frequency component.",
                _rises_between,
            ),
            f"The paper's Fig. 2a. {_WHAT}",
        ),
    ),
    lambda rows, _: curves_of(rows),
    curve=ScoredCurve("frequency", _COLUMN, by="index"),
)
CLAIMS_FOURIER = CLAIMS_FOURIER_DEPTH = Evidence(
    "fourier",
    (
        *_VALUE.of_blocks("Fig. 8", _WHY),
        Claim(
            "subsampling_increases_high_frequency",
            "Subsampling increases the high-frequency component",
            "Fig. 2a",
            every_model,
            rises(None, _VALUE.column, _VALUE.words),
            _WHY,
        ),
        _VALUE.of_attention("after Fig. 8", f"{SPECIFIC} {_WHAT}"),
        Claim(
            "stage_end_reduces_high_frequency",
            "Convs at the ends of stages reduce the high-frequency component",
            "the authors, of ConvNeXt",
            convolutional,
            share(
                "share of ends of stages",
                "The last blocks of stages count (those before one that subsamples, and the last "
                "of all) if they do not subsample: one is in favour if the high-frequency "
                "component is lower after it than before it.",
                _falls_at_ends,
            ),
            "Not in the paper: in issue 7 of their code its authors say, with a figure, that the "
            "layers at the ends of stages reduce high frequencies in ConvNeXt and not in ResNet.",
        ),
    ),
    lambda rows, _: with_subsampling(ends_of(curves_of(rows))),
    curve=ScoredCurve("depth", _COLUMN),
)
CLAIMS_AVERAGING = Evidence(
    "fourier",
    (_VALUE.of_averaging("remove high frequencies"),),
    lambda rows, _: ends_of(curves_of(rows)),
)
