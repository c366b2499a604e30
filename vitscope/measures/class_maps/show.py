from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from vitscope.claims.claim import Evidence, Row, attending, every_model, make_claims
from vitscope.claims.intervals import RESAMPLED
from vitscope.claims.points import Points
from vitscope.claims.statistics import Found, Statistic, difference, one_value
from vitscope.drawing.axes import draw_points_with_intervals
from vitscope.drawing.figure import Members, rows_of
from vitscope.drawing.legends import INTERVAL
from vitscope.drawing.looks import GRAY, INTERVAL_WIDTH, REFERENCE
from vitscope.drawing.overlays import (
    draw_map,
    draw_picture,
    groups_of_panels,
    name_picture,
    read_picture,
)
from vitscope.drawing.panels import make_row_panels

_RANDOM = {"random": "random map"}
METHODS = {"grad_cam": "Grad-CAM", "gradient_rollout": "gradient rollout", "rollout": "rollout"}
# All maps share a scale: each is divided by its largest value.
_SCALE = Normalize(0, 1)


def plot_class_maps(table: pd.DataFrame, members: Members) -> Figure:
    """Draw for each model a row for each image: the image, and the map of each method over it."""
    shown = [rows_of(table, each.model, ["image"]) for each in members]
    rows = max(of_model["image"].nunique() for of_model in shown)
    methods = [method for method in METHODS if method in set(table["method"])]
    groups = groups_of_panels([(rows, 1 + len(methods))] * len(members), 2, one_scale=True)
    for of_model, grid in zip(shown, groups.grids, strict=True):
        unused = {*grid.ravel()}
        for (_, maps), line in zip(of_model.groupby("image"), grid, strict=False):
            unused -= _draw_class_maps(maps, line, methods, groups.side)
        for axes, method in zip(grid[0, 1:], methods, strict=True):
            axes.set_title(METHODS[method], fontsize="small", pad=2)
        for axes in unused:
            axes.remove()
    points = [of.loc[of["method"] == "grad_cam", "of"].iloc[0] for of in shown]
    groups.titles(
        [f"{member.label} (Grad-CAM of {at})" for member, at in zip(members, points, strict=True)]
    )
    groups.bar(_SCALE, "Value of a map, over its largest value", over=True)
    return groups.figure


def _draw_class_maps(
    maps: pd.DataFrame, line: Sequence[Axes], methods: Sequence[str], side: float
) -> set[Axes]:
    """Draw an image and the map of each method over it; return the panels used."""
    pixels = read_picture(maps["picture"].iloc[0])
    draw_picture(line[0], pixels)
    name_picture(line[0], maps.iloc[0], side)
    drawn = {line[0]}
    for _, row in maps.iterrows():
        axes = line[1 + methods.index(row["method"])]
        place = (row["height"], row["width"])
        draw_map(axes, row["values"], place, _SCALE, pixels.shape[:2], pixels)
        drawn.add(axes)
    return drawn


def plot_deletion(table: pd.DataFrame, members: Members) -> Figure:
    """Draw for each model the area below the curve of deletion of each method, as a dot."""
    return _plot_areas(table, members, "deleted")


def plot_insertion(table: pd.DataFrame, members: Members) -> Figure:
    """Draw for each model the area below the curve of insertion of each method, as a dot."""
    return _plot_areas(table, members, "inserted")


_AREA = ["area_low", "area", "area_high"]
_ROW = 0.19  # inches


def _plot_areas(table: pd.DataFrame, members: Members, change: str) -> Figure:
    """Draw a row for each method, and the area of random maps as a line, which others should beat.

    An area is the mean probability of the class over all shares of pixels.
    """
    rows = table[table["change"] == change].drop_duplicates(["model", "method"])
    methods = {
        name: each for name, each in (METHODS | _RANDOM).items() if name in {*rows["method"]}
    }
    panels = make_row_panels([*methods.values()], _ROW, count=len(members))
    for panel in panels.of_models(members, rows, ["method"]):
        of_method = 100 * panel.rows.set_index("method")[_AREA]
        for height, method in enumerate(methods):
            if method in of_method.index:
                line = panel.look.hollow if method in _RANDOM else panel.look.line
                draw_points_with_intervals(panel.axes, height, of_method.loc[method], line)
        if "random" in of_method.index:
            panel.axes.axvline(float(of_method["area"]["random"]), **REFERENCE, zorder=0)
        panel.axes.set_xlim(0, 105 * rows["area_high"].fillna(rows["area"]).max())
    panels.legend.add_line(INTERVAL, {"color": GRAY, "linewidth": INTERVAL_WIDTH})
    panels.legend.add_line("random map", REFERENCE)
    return panels.finish(f"Mean probability of the class, pixels {change} (%)", "")


_NAMES = {**METHODS, "random": "a random map"}
_OCCLUDED = (
    "Not in the paper: Selvaraju et al. 2017 find maps of Grad-CAM faithful to CNNs, by what is "
    "occluded."
)
_REMOVED = (
    "Not in the paper: Chefer et al. 2021 remove what maps name, and find those with gradients "
    "more faithful than rollout."
)


def _faithfulness_difference(change: str, more: str, less: str) -> Statistic:
    """Return the area of the method `more` minus the area of `less`, on the same images."""

    def subtract_areas(points: Points) -> Found | None:
        return difference(one_value(points, more), one_value(points, less))

    rule = (
        f"The value is the area below the curve of {change} of {_NAMES[more]}, minus that of "
        f"{_NAMES[less]}. With few images its interval is too narrow."
    )
    return Statistic("difference of areas", rule, subtract_areas)


def _faithfulness_claims(changed: str, cam: Row, rollout: Row) -> Evidence:
    def areas_of_methods(rows: pd.DataFrame, _blocks: pd.DataFrame) -> pd.DataFrame:
        of_methods = rows[rows["change"] == changed].drop_duplicates("method")
        resampled = {f"value{RESAMPLED}": of_methods.get(f"area{RESAMPLED}")}
        return of_methods.assign(
            measure=of_methods["method"], value=of_methods["area"], **resampled
        )

    of_cam = make_claims("Selvaraju et al. 2017", every_model, _OCCLUDED, cam)
    of_rollout = make_claims("Chefer et al. 2021", attending, _REMOVED, rollout)
    return Evidence("faithfulness", of_cam + of_rollout, areas_of_methods)


CLAIMS_DELETION = _faithfulness_claims(
    "deleted",
    (
        "grad_cam_finds_what_to_delete",
        "Deleting what Grad-CAM names lowers the class faster than deleting at random",
        _faithfulness_difference("deletion", "random", "grad_cam"),
    ),
    (
        "gradients_find_what_to_delete",
        "Deleting what gradient rollout names lowers the class faster than what rollout names",
        _faithfulness_difference("deletion", "rollout", "gradient_rollout"),
    ),
)
CLAIMS_INSERTION = _faithfulness_claims(
    "inserted",
    (
        "grad_cam_finds_what_to_insert",
        "Inserting what Grad-CAM names raises the class faster than inserting at random",
        _faithfulness_difference("insertion", "grad_cam", "random"),
    ),
    (
        "gradients_find_what_to_insert",
        "Inserting what gradient rollout names raises the class faster than what rollout names",
        _faithfulness_difference("insertion", "gradient_rollout", "rollout"),
    ),
)
