"""What the jobs of all measures depend on."""

from vitscope.jobs.job import Names, Study, Values
from vitscope.measures import registry
from vitscope.networks.building.family import module_of


def values_of_measure(study: Study, names: Names) -> Values:
    """Return how a measure measures a model, or a part, and the columns of what is written."""
    measures, measure, model = registry.of(study), names["measure"], names["model"]
    return {
        "settings": measures.declared(measure).part(study, model, int(names.get("part", 0))),
        "columns": measures.part_columns_of(measure),
        "modules": [measures.module(measure, "compute")],
    }


def values_with_network(study: Study, names: Names) -> Values:
    """Return the same for a measure that runs or reads the network of a model."""
    network, found = study.network(names["model"]), values_of_measure(study, names)
    modules = [*found["modules"], module_of(network["family"])]
    return {**found, "network": network, "modules": modules}


def batch_setting_of(names: Names) -> str | None:
    """Return the measure's own setting of how many images are in memory at once, if it has one."""
    measure = names["measure"]
    return registry.declared(measure).batch_setting if measure in registry.names() else None
