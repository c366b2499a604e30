"""The code that a job of each rule reaches: when it changes, the job runs again.

A script's own imports are seen in its source. What it imports by a computed name is said here, for
every rule: the family of its model, the room of its measure, the source of its images.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from vitscope.buildup import tried
from vitscope.measures import registry
from vitscope.measures.measure import Measure
from vitscope.networks.building.family import module_of
from vitscope.settings.study import Study
from vitscope.workflow import params
from vitscope.workflow.digests import code_digest

Names = Mapping[str, str]

# Rules whose script is another rule's: they inherit from it.
SCRIPTS = {
    "extract_kept_latents": "extract_latents",
    "convert_snapshot": "convert_checkpoint",
    "fetch_snapshot": "fetch_checkpoint",
    "augment_alike": "augment_images",
    "measure_model_part": "measure_model",
    "draw_default_figure": "draw_figure",
    "draw_default_video": "draw_video",
    "draw_default_buildup": "draw_buildup",
    "train_mini": "bundle_weights",
    "train_mini_buildup": "bundle_weights",
    "merge_pair": "merge",
}


def _source(study: Study, names: Names) -> list[str]:
    return [f"vitscope.data.sources.{study.data[names['dataset']].source['kind']}"]


def _family(study: Study, names: Names) -> list[str]:
    return [module_of(study.models[names["model"]].family)]


def _family_of_video(study: Study, names: Names) -> list[str]:
    return _family(study, {"model": study.videos[names["video"]].model})


def _family_of_steps(study: Study, names: Names) -> list[str]:
    return [module_of(tried.FAMILY)]


def _room(study: Study, names: Names) -> list[str]:
    return [registry.module(names["measure"], part) for part in ("compute", "table")]


def _family_and_room(study: Study, names: Names) -> list[str]:
    return [*_family(study, names), *_room(study, names)]


def _weights(study: Study, names: Names) -> list[str]:
    # What was recorded in training takes no network.
    recorded = study.models[names["model"]].history is not None
    return _room(study, names) if recorded else _family_and_room(study, names)


def _merging(study: Study, names: Names) -> list[str]:
    return [module for module in merging(names["measure"]).values() if module]


def _columns(study: Study, names: Names) -> list[str]:
    return [params.columns_of(names["table"])]


def _figure(study: Study, names: Names) -> list[str]:
    tables = params.figure_tables(study, names["figure"])
    return [params.figure_module(study, names["figure"]), *tables.values()]


def _claims(study: Study, names: Names) -> list[str]:
    return params.claim_modules(study)


BY_NAME: dict[str, Callable[[Study, Names], list[str]]] = {
    "build_split": _source,
    "convert_checkpoint": _family,
    "list_blocks": _family,
    "extract_latents": _family,
    "predict": _family,
    "train_model": _family,
    "measure_latents": _room,
    "measure_predictions": _room,
    "measure_model": _family_and_room,
    "measure_loss": _family_and_room,
    "measure_network": _family_and_room,
    "measure_weights": _weights,
    "merge": _merging,
    "tabulate": _columns,
    "draw_figure": _figure,
    "draw_video": _family_of_video,
    "train_step": _family_of_steps,
    "measure_step": _family_of_steps,
    "count_claims": _claims,
}


def measured_by(measure: Measure) -> Measure:
    """Return the measure that the parts of a table are of: itself, unless it says another."""
    return registry.declared(measure.parts_of) if measure.parts_of else measure


def merging(measure: str) -> dict[str, str | None]:
    """Return the modules that merge a table: columns of parts and table, and if it says, how.

    Those of the block table are among them where parts are merged at its cut points.
    """
    declared = registry.declared(measure)
    part = measured_by(declared).name
    return {
        "part": registry.module(part, "table"),
        "table": registry.module(measure, "table"),
        "merge": registry.merging_module(measure),
        "blocks": params.columns_of("blocks") if declared.merges_blocks else None,
    }


def modules(rule: str, study: Study, names: Names) -> list[str]:
    """Return the modules that a job of a rule imports by computed names."""
    by_name = BY_NAME.get(SCRIPTS.get(rule, rule))
    return by_name(study, names) if by_name else []


def digest(rule: str, study: Study, names: Names, scripts: Path) -> str:
    """Digest the script of a rule, in the folder `scripts`, and all code that a job reaches."""
    script = scripts / f"{SCRIPTS.get(rule, rule)}.py"
    return code_digest(script, *modules(rule, study, names))
