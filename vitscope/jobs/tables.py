"""Every table of the project by its name, where it is not known beforehand which is needed."""

from functools import cache
from importlib import import_module

from vitscope.errors import VitscopeError, nearest
from vitscope.files.tables import Table
from vitscope.measures import registry

# The tables that are no measure's, and where their columns are.
OTHERS = {
    "blocks": ("vitscope.networks.finding.cut_point_columns", "BLOCKS"),
    "predictions": ("vitscope.networks.running.prediction_table", "PREDICTIONS"),
    "buildup": ("vitscope.buildup.table", "BUILDUP"),
    "buildup_result": ("vitscope.buildup.table", "RESULT"),
    "training_history": ("vitscope.training.history", "HISTORY"),
    "claims": ("vitscope.claims.tables", "CLAIMS"),
    "agreement": ("vitscope.claims.tables", "AGREEMENT"),
}


@cache
def tables() -> dict[str, Table]:
    """Return all tables by their names: of measures, of their parts, and others."""
    found: dict[str, Table] = {}
    for measure in registry.names():
        declared = registry.declared(measure)
        found |= {table.name: table for table in (declared.part_table, declared.table)}
    for module_name, constant in OTHERS.values():
        other: Table = getattr(import_module(module_name), constant)
        found[other.name] = other
    return found


def find_table(name: str) -> Table:
    """Return a table by its name."""
    if name not in tables():
        raise VitscopeError(f"There is no table '{name}'.{nearest(name, tables())}")
    return tables()[name]
