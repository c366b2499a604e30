"""What the jobs of networks and measures depend on, and how a measure is made."""

from collections.abc import Mapping, Sequence
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from vitscope.jobs.job import Names, Study, Values
from vitscope.measures import registry
from vitscope.measures.columns import OF_IMAGE
from vitscope.networks.building.family import module_of

if TYPE_CHECKING:
    import pandas as pd

    from vitscope.files.tables import Columns


def with_network(study: Study, model: str) -> Values:
    """Return what it takes to build the network of a model, and the module that builds it."""
    network = study.network(model)
    return {"network": network, "modules": [module_of(network["family"])]}


def values_of_measure(study: Study, names: Names) -> Values:
    """Return how a measure measures a model, or a part, and the columns of what is written."""
    measures, measure, model = registry.of(study), names["measure"], names["model"]
    return {
        "settings": measures.declared(measure).measuring(study, model, int(names.get("part", 0))),
        "columns": measures.part_columns_of(measure),
        "modules": [measures.measuring(measure)],
    }


def values_with_network(study: Study, names: Names) -> Values:
    """Return the same for a measure that runs or reads the network of a model."""
    found, built = values_of_measure(study, names), with_network(study, names["model"])
    return {**found, **built, "modules": [*found["modules"], *built["modules"]]}


def batch_setting_of(names: Names) -> str | None:
    """Return the measure's own setting of how many images are in memory at once, if it has one."""
    measure = names["measure"]
    return registry.declared(measure).batch_setting if measure in registry.names() else None


def name_images(
    table: "pd.DataFrame", columns: "Columns", rows: Sequence[int], first: int
) -> "pd.DataFrame":
    """Return a part of maps that calls images by their rows in the split, as predictions do.

    Measured, an image has its position among all; that of the first of these rows is `first`.
    """
    if "image" not in columns or columns["image"][1] != OF_IMAGE["image"][1]:
        return table
    return table.assign(image=[rows[position - first] for position in table["image"]])


def write_measured(
    values: Values,
    given: object,
    output: Any,
    origin: Mapping[str, str],
    rows: Sequence[int] | None = None,
) -> None:
    """Measure what is given, and write the table; `rows` are those of latents in their split."""
    from vitscope.files.tables import Table

    measure, *_ = values["modules"]
    table = resolve_name(measure)(given, **values["settings"])
    if rows is not None:
        table = name_images(table, values["columns"]["columns"], rows, values["first_image"])
    Table(**values["columns"]).write(table, output, origin)
