"""The inputs of jobs: functions of wildcards, in the order of the stages."""

from itertools import count

from vitscope.buildup.rule import read_buildup_proposal
from vitscope.data.opening import archive_needed, local_files, local_path_exists, require_existing
from vitscope.files.pairs import by_prefix
from vitscope.jobs import buildups
from vitscope.jobs.training import first_of_shared_augmentation_job
from vitscope.jobs.videos import source_path
from vitscope.jobs.latents import FORMATS as LATENTS_FORMATS
from vitscope.jobs.networks import checkpoint_entry
from vitscope.jobs.job import model_of
from vitscope.jobs.measures import case_of, measure_of_parts
from vitscope.jobs.provenance import splits_to_report
from vitscope.networks.checkpoints.weight_sources import local_file
from vitscope.planning.costs import COUNTED, keeps_latents


def paths_of(output, **names):
    """Return the outputs of a rule, for all combinations of values in `names`."""
    return collect(without_storage(output), **names)


def path_of(output, wildcards, **names):
    """Return the output of a rule, for the wildcards and the study of a job.

    Values in `names` replace those of wildcards.
    """
    found = {**names_of(wildcards), "study": study_of(wildcards).name, **names}
    return without_storage(output).format(**found)


def source_files(wildcards):
    study = study_of(wildcards)
    source = study.data[wildcards.dataset].source
    if archive_needed(source):
        return [path_of(rules.fetch_archive.output.archive, wildcards)]
    if source["kind"] == "url":
        return [path_of(rules.fetch_image.output.file, wildcards)]
    if PLAN and not local_path_exists(source, wildcards.split):
        # A plan may be made before the images exist, and then says so.
        return []
    where = f"{study.path}: data.{wildcards.dataset}.source"
    there = exit_on_user_error(local_files, where, source, wildcards.split, study.path)
    return [local(file) for file in there]


def output_of_model(output):
    """Return a function that finds the output of a rule for the model that a job is about."""

    def path_for_model(wildcards):
        model = model_of(study_of(wildcards), names_of(wildcards))
        return path_of(output, wildcards, model=model)

    return path_for_model


def split_for(split):
    """Return a function that finds a split of the data set of the model that a job is about."""

    def path_of_split(wildcards):
        study = study_of(wildcards)
        dataset = study.models[model_of(study, names_of(wildcards))].data
        name = split(study) if callable(split) else split
        return path_of(rules.build_split.output.images, wildcards, dataset=dataset, split=name)

    return path_of_split


TRAINED = re.compile(r"(init|warmup|end|epoch_\d+)\.safetensors|history\.parquet")


def made_by_training(path):
    """Tell whether rules/training.smk or rules/buildups.smk makes a file."""
    if not Path(path).is_relative_to(FOLDERS["results"]):
        return False
    *folders, file = Path(path).relative_to(FOLDERS["results"]).parts or [""]
    of_model = len(folders) == 3 and folders[1] == "training"
    of_step = len(folders) == 5 and (folders[1], folders[3]) == ("buildups", "trained")
    return bool((of_model or of_step) and TRAINED.fullmatch(file))


def named_file(wildcards, key, entry, download=None):
    """Return the file that an entry of a model names: trained, on this machine or downloaded."""
    if made_by_training(entry.get("path", "")):
        return entry["path"]
    where = f"{study_of(wildcards).path}: models.{wildcards.model}.{key}"
    there = exit_on_user_error(local_file, where, entry, ROOT, study_of(wildcards).path)
    return download if there is None else local(str(there))


def file_to_convert(rule, key):
    """Return a function that finds the file of a checkpoint; [] if a function makes its weights."""

    def path_to_convert(wildcards):
        names = names_of(wildcards)
        entry = exit_on_user_error(checkpoint_entry, study_of(wildcards), names)
        if "made" in entry:
            return []
        download = path_of(getattr(rules, rule).output.checkpoint, wildcards)
        return named_file(wildcards, key.format(**names), entry, download)

    return path_to_convert


def bundled_outputs(wildcards):
    """Return the training outputs that `mini` bundles, each in the folder of its own model."""
    study = exit_on_user_error(ALL_STUDIES.__getitem__, "mini")
    return [
        f"<results>/mini/training/{name}/{Path(entry['bundled']).name}"
        for name in study.own_models
        for entry in study.models[name].files().values()
        if "bundled" in entry and Path(entry["bundled"]).parent.name == name
    ]


@functools.cache
def study_keeps_latents(study):
    """Tell whether a study keeps its latents; call this late, since it may count its networks."""
    return keeps_latents(STUDIES[study], ALL_STUDIES.keep_latents_gb, COUNTED)


def shards_of_latents(wildcards, model=None):
    study, model = study_of(wildcards), model or wildcards.model
    made = rules.extract_kept_latents if study_keeps_latents(study.name) else rules.extract_latents
    shards = range(study.shards(model))
    return paths_of(made.output.latents, study=study.name, model=model, part=shards)


def given_file(study, key, path):
    """Return the file or folder that a study names, or [] if it names none."""
    where = f"{study.path}: {key}"
    if path is None:
        return []
    return local(exit_on_user_error(require_existing, where, Path(path).expanduser(), study.path))


def official_corrupted(wildcards):
    study, name = study_of(wildcards), wildcards.dataset
    return given_file(study, f"data.{name}.corrupted", study.data[name].corrupted)


def declarations_of(measure):
    """Return what a measure declares and needs, whether it has parts, whether it takes latents."""
    of_latents = measure_of_parts(measure).needs == "latents"
    said = vars(measure.need) | vars(measure)
    return said | {"in_parts": measure.in_parts, "of_latents": of_latents}


def measures_that(**declared):
    """Return a wildcard constraint: the measures, own ones too, with these declarations.

    Unless `declared` says otherwise, they are measured neither in parts nor from latents.
    """
    own = (each for study in STUDIES.values() for each in study.own_measures.values())
    wanted = {"in_parts": False, "of_latents": False, **declared}.items()
    known = (*map(registry.declared, registry.names()), *own)
    return one_of({each.name for each in known if wanted <= declarations_of(each).items()})


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


# The path of the table of a model or a pair, for every rule that makes one.
OF_SUBJECT = "<results>/{study}/{table}/{model}.parquet"


def subjects_in_table(wildcards):
    """Return the tables of models or pairs that are joined to one table of a study."""
    study = study_of(wildcards)
    subjects = study.subjects_of(wildcards.table)
    return collect(OF_SUBJECT, study=study.name, table=wildcards.table, model=subjects)


def paths_of_models(path, of=Study.models_of):
    """Return a function that finds a path for every model that `of` lists for a study."""

    def paths_for_study(wildcards):
        study = study_of(wildcards)
        return paths_of(path, study=study.name, model=of(study))

    return paths_for_study


def joined_tables(names):
    """Return a function that finds the joined tables that `names` lists for a study."""

    def paths_by_table(wildcards):
        joined = rules.tabulate.output.table
        tables = names(study_of(wildcards))
        return {table: path_of(joined, wildcards, table=table) for table in tables}

    return paths_by_table


def published_points(wildcards):
    """Return the files of published points of a figure or build-up, or of a whole study."""
    study, names = study_of(wildcards), names_of(wildcards)
    known = study.figures | study.buildups
    shown = [known[names[key]] for key in ("figure", "buildup") if key in names] or known.values()
    # A figure names a file and its series, a build-up only a file.
    files = {getattr(each.published, "file", each.published) for each in shown if each.published}
    return [from_here(package_data.PUBLISHED_POINTS / name) for name in sorted(files)]


def tables_of_overview(wildcards):
    """Return the tables of models and of build-ups, by name, that the overview shows and counts."""
    study = study_of(wildcards)
    shown = figures_for_overview_job(study)
    figures = [study.figures[name] for name in figures_counted_in_overview_job(study)]
    figures += [study.figures[name] for name in shown if name in study.figures]
    models = {model for each in figures for model in each.models}
    subjects = {}
    for figure in figures:
        for table in figure.measures:
            subjects.setdefault(table, set()).update(figure.subjects(table))
    names = {"study": study.name}
    buildups = rules.tabulate_buildup.output.table
    return {
        "cut_points": paths_of(
            rules.convert_checkpoint.output.blocks, model=sorted(models), **names
        ),
        **{
            f"buildup_{name}": path_of(buildups, wildcards, buildup=name)
            for name in shown
            if name in study.buildups
        },
        **{
            table: [OF_SUBJECT.format(table=table, model=each, **names) for each in sorted(of)]
            for table, of in subjects.items()
        },
    }


def tables_of_page(wildcards):
    """Return the tables of a network's page and of other trainings that its verdicts count."""
    study, kinds, model = study_of(wildcards), registry.kinds(), wildcards.model
    models, every = {}, {model}
    for kind in kinds_for_network_page_job(study, model):
        counted = models_counted_on_network_page(study, kind, model)
        every.update(counted)
        for table in kinds[kind].tables:
            models.setdefault(table, set()).update(counted)
    return {
        table: collect(OF_SUBJECT, study=study.name, table=table, model=sorted(of))
        for table, of in sorted((models | {"blocks": every}).items())
    }


def tables_of_figure(wildcards):
    study = study_of(wildcards)
    figure = study.figures[names_of(wildcards)["figure"]]
    return {
        table: collect(OF_SUBJECT, study=study.name, table=table, model=figure.subjects(table))
        for table in figure.tables
    }


def labels_of_shown(wildcards):
    """Return the name of a figure or video in the report, and what it shows."""
    study, (key,) = study_of(wildcards), (key for key in SHOWN if hasattr(wildcards, key))
    name = names_of(wildcards)[key]
    if key == "figure":
        title = describing.title_of_figure(study, name)
    else:
        title = {"video": "A network over a video", "buildup": "How AlterNet is built up"}[key]
    labels = {"result": name, "shows": as_inert(title), "study": study.name}
    return labels | ({"format": wildcards.format} if hasattr(wildcards, "format") else {})


def question_of(wildcards):
    """Return the question that a figure is about, which is its subcategory in the report."""
    study = study_of(wildcards)
    figure = study.figures[names_of(wildcards)["figure"]]
    return as_inert(registry.of(study).declared(figure.measure).question)


def in_report(path, caption, subcategory):
    """Return the path of a figure, marked for the section of figures in the report."""
    place = {"category": "Figures", "subcategory": subcategory}
    return report(path, caption=f"../report/{caption}.rst", labels=labels_of_shown, **place)


def source_of_video(wildcards):
    """Return the folder or file of the frames, or its download; [] if they are generated."""
    study, name = study_of(wildcards), names_of(wildcards)["video"]
    if "url" in study.videos[name].source:
        return path_of(rules.fetch_video.output.file, wildcards)
    return given_file(study, f"videos.{name}.source.path", source_path(study, name))


def splits_of_study(wildcards):
    shown = splits_to_report(study_of(wildcards))
    images = rules.build_split.output.images
    return [path_of(images, wildcards, dataset=dataset, split=name) for dataset, name in shown]


def results_of_earlier_steps(wildcards):
    steps = range(int(wildcards.step))
    return [path_of(rules.measure_step.output.result, wildcards, step=n) for n in steps]


def trained_steps(study, buildup):
    """Return the indices of all steps; Snakemake calls this again after each decision."""
    for step in count():
        names = {"study": study, "buildup": buildup, "step": step}
        decided = checkpoints.decide_step.get(**names).output.tried
        # Let Snakemake open it: if the file is in a storage, Snakemake fetches it first.
        with decided.open():
            if exit_on_user_error(read_buildup_proposal, decided).network is None:
                return range(step)


def weights_of_steps(wildcards):
    """Return the files of bundled weights; the job that reads them reports missing ones."""
    bundled = buildups.bundled_buildup_steps(study_of(wildcards), wildcards.buildup)
    return [from_here(file) for file in bundled]


def results_of_steps(wildcards):
    study = study_of(wildcards)
    if not buildups.is_trained(study, wildcards.buildup):
        return [path_of(rules.measure_bundled.output.result, wildcards)]
    names = {"study": study.name, "buildup": wildcards.buildup}
    return paths_of(rules.measure_step.output.result, **names, step=trained_steps(**names))


def weights_of_trained_steps(wildcards):
    """Return the weights of all steps of the bundled build-up, trained here."""
    names = {"study": "mini", "buildup": "fig12a"}
    return paths_of(rules.train_step.output.end, **names, step=trained_steps(**names))


def weights_for_studies(wildcards, input):
    study = study_of(wildcards)
    if not buildups.is_trained(study, wildcards.buildup):
        bundled = buildups.bundled_buildup_steps(study, wildcards.buildup)
        return [{"bundled": file.relative_to(package_data.ROOT).as_posix()} for file in bundled]
    steps = range(len(input.results))
    return [{"path": path_of(rules.train_step.output.end, wildcards, step=n)} for n in steps]


def all_files_of(study, folder):
    """Return all files of a study: figures and videos below a folder, its tables, its record."""
    shown = sorted([*STUDIES[study].figures, *STUDIES[study].buildups])
    formats = STUDIES[study].style.formats
    return [
        *collect("{folder}/{figure}.{format}", folder=folder, figure=shown, format=formats),
        *collect("{folder}/{video}.webp", folder=folder, video=sorted(STUDIES[study].videos)),
        *paths_of(rules.tabulate.output.table, study=study, table=STUDIES[study].tables()),
        *paths_of(rules.count_claims.output.claims, study=study),
        *paths_of(rules.draw_overview.output.pdf, study=sorted({study} & STUDIES_WITH_OVERVIEW)),
        *paths_of(rules.record_run.output.record, study=study),
    ]
