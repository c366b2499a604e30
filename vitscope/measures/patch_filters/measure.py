"""Patch filters: what the first layer of a network multiplies the pixels of an image by.

The table `patch_filters`: one row per model and filter, and one per principal component.

The filters belong to the first layer with weights that images pass through: the patch projection in
a ViT, the first convolution in other networks. Weights are taken as the layer uses them, for
example standardized. The principal components are computed from all filters of the layer as
vectors, about their mean; the sign of a component is chosen so that its largest value is positive.

`values` are scaled over the whole filter, or component: 0 is its lowest value, 1 its highest. The
frequency of a filter is the mean over its Fourier transform, with power as weights, of the length
of the frequency vector, in units of pi: 1 at the end of an axis. The mean of each channel counts as
frequency 0. It is null if all weights are 0.
"""

from dataclasses import dataclass

from vitscope.files.tables import Table
from vitscope.measures.measure import FigureKind, Measure, own_settings
from vitscope.settings.section import setting

TABLE = Table(
    "patch_filters",
    {
        "model": ("string", "model, as the study names it"),
        "module": ("string", "name of the layer in the model"),
        "of": ("string", "filter, or component"),
        "number": ("int32", "number of the filter or of the component, from 0"),
        "count": ("int32", "how many filters the layer has, or components its filters have"),
        "channels": ("int32", "channels of the filter"),
        "height": ("int32", "rows of the filter"),
        "width": ("int32", "columns of the filter"),
        "lowest": ("float64", "lowest value, which is 0 in `values`"),
        "highest": ("float64", "highest value, which is 1 in `values`"),
        "frequency": ("float64", "mean frequency, in units of pi"),
        "share": ("float64", "share of a component in the variance of the filters; or null"),
        "values": ("list of float64", "scaled values, by row, column and channel"),
    },
)


@dataclass(frozen=True)
class Settings:
    """The filters of the first layer, and their principal components."""

    filters: int = setting(128, "How many filters at most, from the first.", minimum=1)
    components: int = setting(28, "How many principal components at most.", minimum=1)


PATCH_FILTERS = Measure(
    needs="network",
    table=TABLE,
    question="What the first layer and positions hold",
    figures={"patch_filters": FigureKind(), "patch_components": FigureKind()},
    settings=Settings,
    arguments=own_settings,
)
