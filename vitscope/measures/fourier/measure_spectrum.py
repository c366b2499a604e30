"""The variance of feature maps in bands of frequency, from the parts of `fourier`."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vitscope.errors import VitscopeError
from vitscope.measures.measure import FigureKind, Measure, Merge, own_settings_and_bootstrap
from vitscope.settings.section import setting

if TYPE_CHECKING:
    from vitscope.settings.study import Study


@dataclass(frozen=True)
class Settings:
    """The variance of feature maps in three bands of frequency."""

    edges: list[float] = setting(
        [0.25, 0.5],
        "Where the middle band begins and ends, in units of pi.",
        items={"exclusiveMinimum": 0, "exclusiveMaximum": 1},
        minItems=2,
        maxItems=2,
    )


def refuse_edges(measure: Measure, study: "Study") -> None:
    """Refuse a middle band that ends before it begins."""
    begin, end = measure.read_settings(study).edges
    if begin >= end:
        raise VitscopeError(
            f"{study.path}: analysis.spectrum.edges: found [{begin}, {end}], allowed: two "
            f"numbers of which the second is larger."
        )


MEASURE = Measure(
    needs="parts",
    figures={"spectrum": FigureKind()},
    settings=Settings,
    merge=Merge(own_settings_and_bootstrap, at_cut_points=True),
    parts_of="fourier",
    refuse=refuse_edges,
)
