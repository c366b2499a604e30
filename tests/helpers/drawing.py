from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from vitscope.claims.points import PublishedCurve
from vitscope.drawing.figure import Member
from vitscope.drawing.from_tables import draw_from_tables
from vitscope.drawing.saving import style
from vitscope.measures import registry
from vitscope.package_data import STYLE

RESNET = Member("resnet", "ResNet-50", "resnet")
VIT = Member("vit", "ViT-Ti", "vit")
SWIN = Member("swin", "Swin-Ti", "swin")


def styled(
    draw: Callable[..., Figure], *arguments: Any, own: Mapping[str, Any] | None = None, **more: Any
) -> Figure:
    """Draw a figure in the style, with a study's own keys, so that all is where it will be."""
    with style(STYLE, own):
        figure = draw(*arguments, **more)
        figure.draw_without_rendering()
    return figure


def draw_kind(
    kind: str,
    tables: Mapping[str, pd.DataFrame],
    members: Sequence[Member],
    published: Mapping[str, PublishedCurve],
    snapshots: Sequence[str] = (),
    **options: Any,
) -> Figure:
    """Draw a figure of a kind from its tables, as `draw_from_tables` does."""
    found = registry.kinds()[kind]
    needed = {name: tables[name] for name in found.tables}
    curves = published if found.drawn_columns else None
    values = {**found.values, **options}
    return draw_from_tables(found.draw, needed, members, curves, snapshots, values)


def drawn_from(
    kind: str,
    tables: Mapping[str, pd.DataFrame],
    members: Sequence[Member],
    published: Mapping[str, PublishedCurve] | None = None,
    snapshots: Sequence[str] = (),
    **options: Any,
) -> Figure:
    """Draw a figure of a kind in the style, without laying it out."""
    with style(STYLE):
        return draw_kind(kind, tables, members, published or {}, snapshots, **options)


def laid_out(*arguments: Any, **options: Any) -> Figure:
    """Draw a figure of a kind, so that all of it is where it will be."""
    return styled(drawn_from, *arguments, **options)
