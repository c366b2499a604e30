"""Patch filters: what the first layer of a network multiplies the pixels of an image by."""

from dataclasses import dataclass

from vitscope.measures.measure import FigureKind, Measure, own_settings
from vitscope.settings.section import setting


@dataclass(frozen=True)
class Settings:
    """The filters of the first layer, and their principal components."""

    filters: int = setting(128, "How many filters at most, from the first.", minimum=1)
    components: int = setting(28, "How many principal components at most.", minimum=1)


MEASURE = Measure(
    needs="network",
    figures={"patch_filters": FigureKind(), "patch_components": FigureKind("components")},
    settings=Settings,
    arguments=own_settings,
)
