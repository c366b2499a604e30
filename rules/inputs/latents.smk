"""What rules/latents.smk asks for: inputs, outputs and params by wildcards."""

from vitscope.jobs.latents import FORMATS as LATENTS_FORMATS
from vitscope.planning.costs_of_job import COUNTED, keeps_latents


@functools.cache
def study_keeps_latents(study):
    """Tell whether a study keeps its latents; call this late, since it may count its networks."""
    return keeps_latents(STUDIES[study], ALL_STUDIES.keep_latents_gb, COUNTED)


def shards_of_latents(wildcards, model=None):
    study, model = study_of(wildcards), model or wildcards.model
    made = rules.extract_kept_latents if study_keeps_latents(study.name) else rules.extract_latents
    shards = range(study.shards(model))
    return paths_of(made.output.latents, study=study.name, model=model, part=shards)
