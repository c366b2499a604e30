"""What the jobs of measures.smk are given, and where their inputs lie."""

from vitscope.files.pairs import by_prefix


def needing(needs, in_parts=False):
    """A wildcard constraint: the measures that need something, in parts or as a whole."""
    measures = map(registry.declared, registry.names())
    return one_of(m.name for m in measures if m.needs == needs and m.in_parts == in_parts)


def merged(of_pairs=False):
    """A wildcard constraint: the measures that are made in parts, of models or of pairs of them."""
    measures = map(registry.declared, registry.names())
    return one_of(m.name for m in measures if m.in_parts and m.of_pairs == of_pairs)


def measure_of(wildcards):
    """What the measure of a path says of itself."""
    return registry.declared(wildcards.measure)


def predictions_of(wildcards):
    """What a model says of the images that a measure is about."""
    study = study_of(wildcards)
    split = measure_of(wildcards).split(study)
    return rules.predict.output.predictions.format(
        study=study.name, model=wildcards.model, split=split
    )


def images_of(wildcards):
    """The images that a measure is about."""
    return split_for(measure_of(wildcards).split)(wildcards)


def corrupted_of(wildcards):
    """The corrupted images that a part is measured on."""
    study = study_of(wildcards)
    given = clear(params.part, study, wildcards.measure, wildcards.model, wildcards.part)
    return collect(
        rules.corrupt_images.output.images,
        study=study.name,
        dataset=study.models[wildcards.model].data,
        corruption=given["corruptions"],
    )


def alike_of(wildcards):
    """Images that are augmented alike: one draw of all models that it fits."""
    study = study_of(wildcards)
    first = clear(params.draws_alike, study, wildcards.model)
    return rules.augment_alike.output.images.format(study=study.name, model=first)


# What measures of a model may read besides the model and its images, by the names they give it.
READABLE = {"predictions": predictions_of, "corrupted": corrupted_of, "alike": alike_of}


def read_besides(wildcards):
    """What a measure of a model reads besides."""
    return {name: READABLE[name](wildcards) for name in measure_of(wildcards).reads}


def moments_of(wildcards):
    """The weights of a model in training: its history, or else its snapshots in order."""
    model = study_of(wildcards).models[wildcards.model]
    if model.history is not None:
        return {"history": named_file(wildcards, "history", model.history)}
    return {"snapshots": [weights_at(name, wildcards) for name in model.moments()]}


def parts_of(wildcards, model):
    """The parts of a model that a table is merged from."""
    study, measured = study_of(wildcards), reach.measured_by(measure_of(wildcards))
    place = {"study": study.name, "measure": measured.name, "model": model}
    parts = range(measured.parts(study, model))
    if measured.needs == "loss":
        snapshots = measured.snapshots(study, model)
        return collect(rules.measure_loss.output.part, snapshot=snapshots, part=parts, **place)
    path = "<results>/{study}/{measure}/{model}/{part}.parquet"
    return collect(path, part=parts, **place)


def to_merge(wildcards):
    """The parts that a table is merged from, of each model that it is of.

    And where parts are merged at cut points, the block table.
    """
    found = {}
    for prefix, model in by_prefix(wildcards.model).items():
        found[f"{prefix}parts"] = parts_of(wildcards, model)
        if measure_of(wildcards).merges_blocks:
            found[f"{prefix}blocks"] = rules.list_blocks.output.blocks.format(
                study=wildcards.study, model=model
            )
    return found


def batches_of(wildcards):
    """The setting that says how many images are in memory at once."""
    measure = measure_of(wildcards)
    default = None if measure.needs == "latents" else "analysis.batch_size"
    return measure.batch_setting or default
