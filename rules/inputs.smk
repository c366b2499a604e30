"""The inputs of jobs: functions of wildcards, in the order of the stages."""

from itertools import count

from vitscope.buildup.proposal import read_proposal
from vitscope.data.source_files import archive_needed, existing, local_files
from vitscope.files.pairs import by_prefix
from vitscope.jobs import buildups, draw_video
from vitscope.jobs.augment_images import first_with_same_images
from vitscope.jobs.extract_latents import latents_megabytes
from vitscope.jobs.fetch_checkpoint import checkpoint_entry
from vitscope.jobs.merge import measure_of_parts
from vitscope.jobs.record_run import splits_shown
from vitscope.networks.checkpoints.weight_sources import local_file


def path_of(output, wildcards, **names):
    """The output of a rule, for the study of a path."""
    found = {**names_of(wildcards), "study": study_of(wildcards).name, **names}
    return output.format(**found)


# Data


def source_files(wildcards):
    """The files that a split is made from."""
    study = study_of(wildcards)
    source = study.data[wildcards.dataset].source
    if archive_needed(source):
        return collect(rules.fetch_archive.output, study=study.name, dataset=wildcards.dataset)
    where = f"{study.path}: data.{wildcards.dataset}.source"
    return exit_on_user_error(local_files, where, source, wildcards.split)


def split_for(split):
    """The file of a split of the data set on which a model is measured."""

    def path(wildcards):
        study = study_of(wildcards)
        dataset = study.models[wildcards.model].data
        name = split(study) if callable(split) else split
        return path_of(rules.build_split.output.images, wildcards, dataset=dataset, split=name)

    return path


def predicted_split(wildcards):
    """The file of the split that a model classifies."""
    return split_for(wildcards.split)(wildcards)


# Trainings and checkpoints


TRAINED = re.compile(r"(init|warmup|end|epoch_\d+)\.safetensors|history\.parquet")


def made_by_training(path):
    """Whether rules/training.smk or rules/buildups.smk make a file."""
    if not Path(path).is_relative_to(FOLDERS["results"]):
        return False
    *folders, file = Path(path).relative_to(FOLDERS["results"]).parts or [""]
    of_model = len(folders) == 3 and folders[1] == "training"
    of_step = len(folders) == 5 and (folders[1], folders[3]) == ("buildups", "trained")
    return bool((of_model or of_step) and TRAINED.fullmatch(file))


def named_file(wildcards, key, entry, download=None):
    """The file that an entry of a model names: from training, on this machine or downloaded."""
    if made_by_training(entry.get("path", "")):
        return entry["path"]
    where = f"{study_of(wildcards).path}: models.{wildcards.model}.{key}"
    local = exit_on_user_error(local_file, where, entry, ROOT)
    return download if local is None else str(local)


def file_to_convert(rule, key):
    """The file that a checkpoint is converted from; none if the network comes with its weights."""

    def path(wildcards):
        names = names_of(wildcards)
        entry = exit_on_user_error(checkpoint_entry, study_of(wildcards), names)
        if "made" in entry:
            return []
        download = path_of(getattr(rules, rule).output.checkpoint, wildcards)
        return named_file(wildcards, key.format(**names), entry, download)

    return path


def weights_at(snapshot, wildcards):
    """The weights of a model at a snapshot of its training; at the end, its checkpoint."""
    made = rules.convert_checkpoint if snapshot == END else rules.convert_snapshot
    return path_of(made.output.checkpoint, wildcards, snapshot=snapshot)


def bundled_outputs(study):
    """The outputs of trainings that the models of a study name as files of this repository."""
    models = STUDIES[study].models if study in STUDIES else {}
    return [
        f"<results>/{study}/training/{name}/{Path(entry['bundled']).name}"
        for name in models
        if name in STUDIES[study].own_models
        for entry in models[name].files().values()
        if "bundled" in entry
    ]


# Latents


def keeping_latents():
    """The studies that keep their latents."""
    return {name for name, study in STUDIES.items() if study.analysis.keep_latents}


def room_to_measure(wildcards, input):
    """The megabytes of latents that a measurement keeps from being deleted."""
    return min(LATENTS_MB, costs.file_megabytes(input.latents)) if LATENTS_MB else 0


def room_to_extract(wildcards, input):
    """The megabytes of latents that are to be extracted.

    Latents exist for longer than their extraction runs. But measurements have priority, so that an
    extraction starts only when no measurement could: as long as it takes no less room than each of
    those, all latents that exist are in the hands of a job that runs. Those that a study keeps have
    no bound.
    """
    study = study_of(wildcards)
    bounded = LATENTS_MB and study.name not in keeping_latents()
    if not (bounded and Path(input.blocks).exists()):
        return 0
    # The header of the file fits into one more.
    own = latents_megabytes(request_of("extract_latents", wildcards, input)[1]) + 1
    if own > LATENTS_MB:
        sys.exit(
            f"vitscope: {study.path}: a shard of latents of {wildcards.model} takes "
            f"{own / 1000:g} GB and max_latents_gb is {config['max_latents_gb']:g}: lower "
            f"analysis.shard_size, or raise max_latents_gb."
        )
    results = Path(input.blocks).parents[2]
    existing = [
        costs.file_megabytes(path)
        for name in STUDIES.keys() - keeping_latents()
        for path in results.glob(f"{name}/latents/*/*.safetensors")
    ]
    return min(LATENTS_MB, max([own, *existing]))


# Corruptions


def measured_split(wildcards):
    """The file of the split of a data set that a study measures."""
    split = study_of(wildcards).analysis.split
    return path_of(rules.build_split.output.images, wildcards, split=split)


def official_corrupted(wildcards):
    """The official corrupted images of a data set, if the study has them."""
    study = study_of(wildcards)
    path = study.data[wildcards.dataset].corrupted
    where = f"{study.path}: data.{wildcards.dataset}.corrupted"
    if path is None:
        return []
    return [exit_on_user_error(existing, where, Path(path).expanduser())]


# Measures


def all_measures():
    """The declarations of all measures, with those that studies have of their own."""
    own = (each for study in STUDIES.values() for each in study.own_measures.values())
    return [*map(registry.declared, registry.names()), *(each.measure for each in own)]


def needing(needs, in_parts=False):
    """A wildcard constraint: the measures that need something, in parts or as a whole."""
    measures = all_measures()
    return one_of(m.name for m in measures if m.needs == needs and m.in_parts == in_parts)


def merged(of_pairs=False):
    """A wildcard constraint: the measures that are made in parts, of models or of pairs of them."""
    measures = all_measures()
    return one_of(m.name for m in measures if m.in_parts and m.of_pairs == of_pairs)


def measure_of(wildcards):
    """The declaration of the measure of a path."""
    return registry.of(study_of(wildcards)).declared(wildcards.measure)


def predictions_of(wildcards):
    """The predictions of a model for the images of a measure."""
    split = measure_of(wildcards).split(study_of(wildcards))
    return path_of(rules.predict.output.predictions, wildcards, split=split)


def images_of(wildcards):
    """The images of a measure."""
    return split_for(measure_of(wildcards).split)(wildcards)


def corrupted_of(wildcards):
    """The corrupted images that a part is measured on."""
    study, part = study_of(wildcards), int(wildcards.part)
    given = exit_on_user_error(measure_of(wildcards).part, study, wildcards.model, part)
    return collect(
        rules.corrupt_images.output.images,
        study=study.name,
        dataset=study.models[wildcards.model].data,
        corruption=given["corruptions"],
    )


def alike_of(wildcards):
    """Augmented images that models share: one draw for all models that it fits."""
    first = exit_on_user_error(first_with_same_images, study_of(wildcards), wildcards.model)
    return path_of(rules.augment_alike.output.images, wildcards, model=first)


# What measures of a model may read besides the model and its images, by the names they give it.
READABLE = {"predictions": predictions_of, "corrupted": corrupted_of, "alike": alike_of}


def read_besides(wildcards):
    """The further inputs of a measure of a model."""
    return {name: READABLE[name](wildcards) for name in measure_of(wildcards).reads}


def moments_of(wildcards):
    """The weights of a model in training: its history, or else its snapshots in order."""
    model = study_of(wildcards).models[wildcards.model]
    if model.history is not None:
        return {"history": named_file(wildcards, "history", model.history)}
    return {"snapshots": [weights_at(name, wildcards) for name in model.moments()]}


def parts_of(wildcards, model):
    """The parts of a model that a table is merged from."""
    study, measured = study_of(wildcards), measure_of_parts(measure_of(wildcards))
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
            blocks = path_of(rules.list_blocks.output.blocks, wildcards, model=model)
            found[f"{prefix}blocks"] = blocks
    return found


# Tables, claims, figures and records


def subjects_in_table(wildcards):
    """The table of each model, or pair, that is joined; every rule that makes one writes it here."""
    study = study_of(wildcards)
    subjects = study.subjects_of(wildcards.table)
    path = "<results>/{study}/{table}/{model}.parquet"
    return collect(path, study=study.name, table=wildcards.table, model=subjects)


def all_models(path, of=Study.models_of):
    """One path for every model of the figures of a study."""

    def paths(wildcards):
        study = study_of(wildcards)
        return collect(path, study=study.name, model=of(study))

    return paths


def tables_of_study(wildcards):
    """The tables of all models, by their names."""
    tables = study_of(wildcards).tables()
    return {table: path_of(rules.tabulate.output.table, wildcards, table=table) for table in tables}


def published_files(*names):
    """The files of published points."""
    found = sorted({name for name in names if name})
    return [from_here(package_data.PUBLISHED_POINTS / name) for name in found]


def published_of_study(wildcards):
    """The published points that the figures of a study show."""
    figures = study_of(wildcards).figures.values()
    return published_files(*(figure.published.file for figure in figures if figure.published))


def tables_of_figure(wildcards):
    """The tables of the models of a figure, or of its pairs, by their names."""
    study = study_of(wildcards)
    figure = study.figures[names_of(wildcards)["figure"]]
    path = "<results>/{study}/{table}/{model}.parquet"
    return {
        table: collect(path, study=study.name, table=table, model=figure.subjects(table))
        for table in figure.tables
    }


def published_of_figure(wildcards):
    """The published points that a figure shows, if any."""
    published = study_of(wildcards).figures[names_of(wildcards)["figure"]].published
    return published_files(published and published.file)


def labels_of_shown(wildcards):
    """The name of a figure or video in the report."""
    (key,) = (key for key in SHOWN if hasattr(wildcards, key))
    labels = {"result": names_of(wildcards)[key], "study": study_of(wildcards).name}
    return labels | ({"format": wildcards.format} if key == "video" else {})


def of_video(output):
    """The output of a rule for the model of a video."""

    def path(wildcards):
        model = study_of(wildcards).videos[names_of(wildcards)["video"]].model
        return path_of(output(), wildcards, model=model)

    return path


def source_of_video(wildcards):
    """The folder or file of the frames, if these are not generated."""
    study, name = study_of(wildcards), names_of(wildcards)["video"]
    path = draw_video.source_path(study, name)
    where = f"{study.path}: videos.{name}.source.path"
    return [] if path is None else exit_on_user_error(existing, where, path)


def tables_of_buildups(wildcards):
    """The tables of the build-ups of a study."""
    study = study_of(wildcards)
    return collect(rules.tabulate_buildup.output.table, study=study.name, buildup=study.buildups)


def splits_of_study(wildcards):
    """The files of the splits that the figures of a study are made from."""
    shown = splits_shown(study_of(wildcards))
    images = rules.build_split.output.images
    return [path_of(images, wildcards, dataset=dataset, split=name) for dataset, name in shown]


# Build-ups


def split_of_baseline(split):
    """The file of a split of the data set of a build-up."""

    def path(wildcards):
        study = study_of(wildcards)
        baseline = buildups.baseline_of(study, names_of(wildcards))
        dataset = study.models[baseline].data
        return path_of(rules.build_split.output.images, wildcards, dataset=dataset, split=split)

    return path


def results_before(wildcards):
    """The results of all steps before one, which decide it."""
    steps = range(int(wildcards.step))
    return [path_of(rules.measure_step.output.result, wildcards, step=n) for n in steps]


def steps_of(study, buildup, weights):
    """The numbers of all steps.

    Each is known when the one before it was measured: Snakemake asks again after every decision.
    """
    for step in count():
        names = {"study": study, "buildup": buildup, "weights": weights, "step": step}
        decided = checkpoints.decide_step.get(**names).output.tried
        if exit_on_user_error(read_proposal, decided).network is None:
            return range(step)


def results_of_steps(wildcards):
    """The results of all steps of a build-up."""
    study = study_of(wildcards)
    names = {"study": study.name, "buildup": wildcards.buildup}
    names["weights"] = buildups.weights_of_steps(study, wildcards.buildup)
    return collect(rules.measure_step.output.result, **names, step=steps_of(**names))


def trained_steps(study, buildup):
    """The weights of all steps of a build-up, trained here even where others are bundled."""

    def paths(wildcards):
        names = {"study": study, "buildup": buildup}
        steps = steps_of(**names, weights="trained")
        return collect(rules.train_step.output.end, **names, step=steps)

    return paths


def weights_of_step(wildcards):
    """The weights of a step; none if they should be bundled and are not, which its job reports."""
    if wildcards.weights == "trained":
        return path_of(rules.train_step.output.end, wildcards)
    bundled = buildups.bundled_step(study_of(wildcards), wildcards.buildup, int(wildcards.step))
    file = ROOT / (bundled or "")
    return str(file) if file.is_file() else []


def weights_for_studies(wildcards, input):
    """Where a study finds the weights of each step."""
    steps, study = range(len(input.results)), study_of(wildcards)
    bundled = [buildups.bundled_step(study, wildcards.buildup, step) for step in steps]
    trained = [path_of(rules.train_step.output.end, wildcards, step=step) for step in steps]
    return [{"bundled": b} if b else {"path": t} for b, t in zip(bundled, trained)]


def table_of_buildup(wildcards):
    """The table of a build-up that is drawn."""
    return path_of(rules.tabulate_buildup.output.table, wildcards)


def published_of_buildup(wildcards):
    """The published points that the figure of a build-up shows, if any."""
    return published_files(study_of(wildcards).buildups[names_of(wildcards)["buildup"]].published)


# All of a study


def figures_of_study(wildcards):
    """Every figure of a study, in every format."""
    path, study = "<figures>/{study}/{figure}.{format}", wildcards.study
    return collect(path, study=study, figure=figures_of(study), format=targets.FORMATS)


def videos_of_study(wildcards):
    """Every video of a study."""
    videos = sorted(STUDIES[wildcards.study].videos)
    return collect("<figures>/{study}/{video}.webp", study=wildcards.study, video=videos)


def tables_and_record(study):
    """What belongs to a study besides its figures: tables, claims, and the record of the run."""
    return [
        *collect(rules.tabulate.output.table, study=study, table=tables_in(study)),
        rules.count_claims.output.claims.format(study=study),
        rules.draw_claims.output.pdf.format(study=study),
        rules.record_run.output.record.format(study=study),
    ]
