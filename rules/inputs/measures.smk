"""What rules/measures.smk asks for: inputs, outputs and params by wildcards."""

from vitscope.files.pairs import by_prefix
from vitscope.jobs.measures import case_of, measure_of_parts
from vitscope.jobs.training import first_of_shared_augmentation_job


def declarations_of(measure):
    """Return what a measure declares and needs, whether it has parts, whether it takes latents."""
    of_latents = measure_of_parts(measure).needs == "latents"
    said = vars(measure.need) | vars(measure)
    return said | {"in_parts": measure.in_parts, "of_latents": of_latents}


def measures_that(**declared):
    """Return a wildcard constraint: the measures, own ones too, with these declarations."""
    own = (each for study in STUDIES.values() for each in study.own_measures.values())
    known = (*map(registry.declared, registry.names()), *own)
    return one_of(
        {each.name for each in known if declared.items() <= declarations_of(each).items()}
    )


def measure_of(wildcards):
    return registry.of(study_of(wildcards)).declared(wildcards.measure)


def path_made_by_job(made, names, wildcards):
    """Return the file that a job makes, by the rule that makes it for these names.

    Snapshots, latents that are kept, and images that several models share have rules of their own.
    """
    maker = getattr(rules, made.job)
    if names.get("snapshot", END) != END:
        maker = rules.convert_snapshot
    elif made.job == "extract_latents" and study_keeps_latents(study_of(wildcards).name):
        maker = rules.extract_kept_latents
    elif made.job == "augment_images":
        # Models that draw the same images share one file.
        maker = rules.augment_alike if "alike" in names else rules.augment_images
        first = exit_on_user_error(first_of_shared_augmentation_job, study_of(wildcards), names)
        names = {**names, "model": first}
    output = getattr(maker.output, made.output) if made.output else maker.output[0]
    return path_of(output, wildcards, **names)


def inputs_of_measure(wildcards):
    """Return the inputs that vitscope/measures/needs.py declares for a measure of a model."""
    case, found = case_of(study_of(wildcards), names_of(wildcards)), {}
    for name, each in case.measure.inputs.items():
        if isinstance(each, str):
            entry = getattr(case.study.models[case.model], each)
            found[name] = entry and named_file(wildcards, each, entry)
            continue
        names = exit_on_user_error(case.names, each)
        asked = names if isinstance(names, list) else [names]
        paths = [path_made_by_job(each, one, wildcards) for one in asked]
        found[name] = paths if isinstance(names, list) else paths[0]
    return {name: path for name, path in found.items() if path}


def parts_of(wildcards, model):
    study, measured = study_of(wildcards), measure_of_parts(measure_of(wildcards))
    place = {"study": study.name, "measure": measured.name, "model": model}
    parts = range(measured.parts(study, model))
    if measured.need.of_training:
        snapshots = measured.snapshots(study, model)
        return paths_of(rules.measure_loss.output.part, snapshot=snapshots, part=parts, **place)
    if measured.needs == "latents":
        return paths_of(rules.measure_pass.output.parts, study=study.name, model=model, part=parts)
    path = "<results>/{study}/{measure}/{model}/{part}.parquet"
    return collect(path, part=parts, **place)


def inputs_of_merge(wildcards):
    """Return the parts or latents that a table is merged from, and block tables, by model."""
    measure, found = measure_of(wildcards), {}
    measured = measure_of_parts(measure)
    of_latents = measured.needs == "latents" and study_keeps_latents(study_of(wildcards).name)
    what, find = ("latents", shards_of_latents) if of_latents else ("parts", parts_of)
    for prefix, model in by_prefix(wildcards.model).items():
        found[f"{prefix}{what}"] = find(wildcards, model)
        if measure.merge.at_cut_points:
            blocks = path_of(rules.convert_checkpoint.output.blocks, wildcards, model=model)
            found[f"{prefix}blocks"] = blocks
    return found
