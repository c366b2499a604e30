"""The kinds of figures, known without importing matplotlib.

A kind is a module of this package with a function `plot`, which takes the tables of the kind in
order, the members and the published curves, and returns a figure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from vitscope.errors import VitscopeError, nearest
from vitscope.measures.snapshots import of_snapshots

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from vitscope.claims.published import Published

_BY_DEPTH = frozenset({"index", "normalized_depth", "kind", "subsampling"})


@dataclass(frozen=True)
class Kind:
    """What a kind of figure is drawn from.

    `published` are the columns of a file of published points that it can show, or that its claims
    are compared with; none if empty.
    `snapshots` tells whether a figure of this kind says which moments of training it shows.
    """

    tables: tuple[str, ...]
    published: frozenset[str] = frozenset()
    snapshots: bool = False


KINDS: dict[str, Kind] = {
    "feature_variance": Kind(("feature_variance",), _BY_DEPTH | {"variance"}),
    "fourier_curves": Kind(("fourier",), frozenset({"index", "frequency", "delta_log_amplitude"})),
    "fourier_depth": Kind(("fourier",), _BY_DEPTH | {"delta_log_amplitude"}),
    "fourier": Kind(("fourier",)),
    "spectrum": Kind(("spectrum",)),
    "frequency_noise": Kind(("frequency_noise",), frozenset({"frequency", "change"})),
    "cka": Kind(("cka", "blocks")),
    "lesion": Kind(
        ("lesion", "blocks"), frozenset({"index", "normalized_depth", "kind", "change"})
    ),
    "reliability": Kind(("reliability", "classification")),
    "shape_texture": Kind(("shape_texture",)),
    "landscape": Kind(("landscape",), frozenset({"measure", "value"})),
    "landscape_contour": Kind(("landscape",)),
    "landscape_slices": Kind(("landscape",)),
    "trajectory": Kind(("trajectory",)),
    "hessian": Kind(("hessian",), frozenset({"panel", "eigenvalue", "density"}), snapshots=True),
    "hessian_density": Kind(("hessian_density",), snapshots=True),
    "fit": Kind(("fit",), frozenset({"metric", "value"})),
    "robustness": Kind(("robustness", "corruption_error")),
}


FIGURE_MODULES = {
    "feature_variance": "vitscope.measures.feature_variance.figure",
    "fourier_curves": "vitscope.measures.fourier.figure_curves",
    "fourier_depth": "vitscope.measures.fourier.figure_depth",
    "fourier": "vitscope.measures.fourier.figure",
    "spectrum": "vitscope.measures.spectrum.figure",
    "frequency_noise": "vitscope.measures.frequency_noise.figure",
    "cka": "vitscope.measures.cka.figure",
    "lesion": "vitscope.measures.lesion.figure",
    "reliability": "vitscope.measures.reliability.figure",
    "shape_texture": "vitscope.measures.shape_texture.figure",
    "landscape": "vitscope.measures.landscape.figure",
    "landscape_contour": "vitscope.measures.landscape.figure_contour",
    "landscape_slices": "vitscope.measures.landscape.figure_slices",
    "trajectory": "vitscope.measures.trajectory.figure",
    "hessian": "vitscope.measures.hessian.figure",
    "hessian_density": "vitscope.measures.hessian_density.figure",
    "fit": "vitscope.measures.fit.figure",
    "robustness": "vitscope.measures.robustness.figure",
}


@dataclass(frozen=True)
class Member:
    """A model of a figure: its name in the tables, what to call it, and its family."""

    model: str
    label: str
    family: str


def module_of(kind: str) -> str:
    """Return the name of the module that draws a kind of figure."""
    if kind not in KINDS:
        raise VitscopeError(
            f"There is no kind of figure '{kind}', only {', '.join(sorted(KINDS))}."
            f"{nearest(kind, KINDS)}"
        )
    return FIGURE_MODULES[kind]


def draw(
    kind: str,
    tables: Mapping[str, "pd.DataFrame"],
    members: Sequence[Member],
    published: Mapping[str, "Published"],
    snapshots: Sequence[str] = (),
) -> "Figure":
    """Draw a figure from its tables; call it within `canvas.style`.

    With `snapshots`, of a kind that has them, it shows these in this order and no others.
    """
    plot = import_module(module_of(kind)).plot
    needed = (tables[name] for name in KINDS[kind].tables)
    shown = (of_snapshots(table, snapshots) if snapshots else table for table in needed)
    figure: Figure = plot(*shown, members, published)
    return figure
