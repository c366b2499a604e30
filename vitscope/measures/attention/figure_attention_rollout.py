"""What the output looks at: images, their rollout, and that over the image."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from vitscope.drawing.figure import Member
from vitscope.drawing.overlays import (
    draw_map,
    draw_picture,
    groups_of_panels,
    read_picture,
)
from vitscope.drawing.rows import rows_of

# One scale for all: each rollout is over its largest value.
_SCALE = Normalize(0, 1)


def plot(table: pd.DataFrame, members: Sequence[Member]) -> Figure:
    """Draw for each model a row for each image: image, rollout, and both."""
    shown = [rows_of(table, each.model, ["image"]) for each in members]
    rows = max(map(len, shown))
    groups = groups_of_panels(len(members), rows, 3)
    for images, grid in zip(shown, groups.grids, strict=True):
        for (_, image), (left, middle, right) in zip(images.iterrows(), grid, strict=False):
            pixels = read_picture(image["picture"])
            place = (image["height"], image["width"])
            draw_picture(left, pixels)
            for axes, over in ((middle, None), (right, pixels)):
                draw_map(axes, image["rollout"], place, _SCALE, pixels.shape[:2], over)
    titles = [
        f"{member.label} ({of['of'].iloc[0]})" for member, of in zip(members, shown, strict=True)
    ]
    groups.titles(titles)
    groups.bars([_SCALE] * len(members), "Rollout")
    return groups.figure
