from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from vitscope.claims.points import Published
from vitscope.drawing.figure import Member, draw
from vitscope.measures import registry

RESNET = Member("resnet", "ResNet-50", "resnet")
VIT = Member("vit", "ViT-Ti", "vit")
SWIN = Member("swin", "Swin-Ti", "swin")


def draw_kind(
    kind: str,
    tables: Mapping[str, pd.DataFrame],
    members: Sequence[Member],
    published: Mapping[str, Published],
    snapshots: Sequence[str] = (),
    **options: Any,
) -> Figure:
    """Draw a figure of a kind from its tables, as `draw` does."""
    found = registry.kinds()[kind]
    needed = {name: tables[name] for name in found.tables}
    curves = published if found.drawn_columns else None
    values = {**found.values, **options}
    return draw(registry.drawing(found), needed, members, curves, snapshots, values)
